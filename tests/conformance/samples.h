// SPDX-License-Identifier: Apache-2.0
//
// Sample calls of every op, made from the registry: the examples that an op declares (or, where it
// declares none, equal shapes for all inputs), for each type that it allows. What the conformance
// test and the comparison of devices run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/op/op_def.h"
#include "core/op/resource.h"
#include "core/op/testing/op_runner.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct SampleCall {
  const OpDef* op = nullptr;
  std::string label;  // "Concat #1 T=half", for messages
  // Per argument of the op, in order. Variables (arguments that are references or resources) are
  // handles whose Variable holds a value and lives in `resources`. Variants are lists: of the
  // slices of the tensor that the example describes.
  std::vector<std::vector<Tensor>> args;
  Attrs attrs;
  std::map<std::string, DType> types;  // the type attributes, for choosing among kernels
  bool check_gradient = true;
  std::shared_ptr<ResourceStore> resources;

  // All inputs in order.
  std::vector<Tensor> Inputs() const;
  // The same call on other inputs; by the CPU's kernel, or by that of `accelerator`.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs) const;
  StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs,
                                    const OpRunner::Accelerator& accelerator) const;
};

// Makes the store of one call.
using StoreMaker = std::function<std::shared_ptr<ResourceStore>()>;

// Fresh state with each call, in a store that `make_store` makes. Empty where the op needs no more
// than its existence to be sampled, which no op does; an op that cannot run alone gives
// InvalidArgument that says what to declare.
StatusOr<std::vector<SampleCall>> SamplesOf(
    const OpDef& op, const StoreMaker& make_store = std::make_shared<ResourceStore>);

}  // namespace penstock

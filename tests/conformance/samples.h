// SPDX-License-Identifier: Apache-2.0
//
// Makes sample calls of every op from the registry, for the conformance test and the comparison of
// devices. The samples of an op are the examples that it declares (or equal shapes for all inputs,
// if it declares none), for each type that it allows.
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
  // The tensors of each argument of the op, in order. Variables (arguments that are refs or
  // resources) are handles of initialised Variables in `resources`. Variants are lists of the
  // slices of the tensor that the example describes.
  std::vector<std::vector<Tensor>> args;
  Attrs attrs;
  std::map<std::string, DType> types;  // the type attributes, to choose a kernel
  bool check_gradient = true;
  std::shared_ptr<ResourceStore> resources;

  // Returns all inputs in order.
  std::vector<Tensor> Inputs() const;
  // Makes the same call with other inputs, with the CPU's kernel or with that of `accelerator`.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs) const;
  StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs,
                                    const OpRunner::Accelerator& accelerator) const;
};

// Makes the store of one call.
using StoreMaker = std::function<std::shared_ptr<ResourceStore>()>;

// Returns the op's sample calls; each has its own state, in a store from `make_store`. If the op
// needs an example that it does not declare, returns InvalidArgument that says what to declare.
StatusOr<std::vector<SampleCall>> SamplesOf(
    const OpDef& op, const StoreMaker& make_store = std::make_shared<ResourceStore>);

}  // namespace penstock

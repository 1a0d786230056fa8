// SPDX-License-Identifier: Apache-2.0
//
// OpRunner: runs one op alone, for tests: completes attributes, infers shapes, makes the kernel,
// runs it (asynchronous ones too, waiting up to 10 s) and checks that what it produced is what its
// shape function and its types promised.
//
//   OpRunner run("Concat");
//   auto y = run.In(Tensor::Scalar<int32_t>(0)).InList({a, b}).Run1();
//
// An op's type, count and list attributes are inferred from the inputs, as the graph builder does.
// For a Ref input pass a tensor holding a ResourceHandle. State lives in the runner: reuse its
// store by constructing with another runner's `resources()`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/attr.h"
#include "core/op/registry.h"
#include "core/op/resource.h"
#include "core/tensor/tensor.h"

namespace penstock {

class OpRunner {
 public:
  explicit OpRunner(string_view op, std::shared_ptr<ResourceStore> resources = nullptr,
                    const Registry& registry = Registry::Global());

  OpRunner& In(Tensor tensor);
  OpRunner& InList(std::vector<Tensor> tensors);
  OpRunner& Attr(string_view name, AttrValue value);
  OpRunner& NodeName(string_view name);       // default: the op's name
  OpRunner& Device(string_view device_type);  // default "CPU"
  // Runs the kernel of a device with memory of its own. Inputs and outputs stay host tensors: they
  // are copied, but for the kernel's host_args, strings and handles. (The memory of a variable
  // behind a handle is the caller's business.)
  struct Accelerator {
    std::string type;  // "GPU"
    Allocator* allocator = nullptr;
    void* stream = nullptr;
    void* handles = nullptr;
    // Each returns when the bytes are there; from_device after what was launched before.
    std::function<StatusOr<Tensor>(const Tensor&)> to_device, from_device;
  };
  OpRunner& On(Accelerator accelerator);
  // The store of the step, for ops that work on what another op of the same step has made; by
  // default each run has its own.
  OpRunner& StepResources(std::shared_ptr<ResourceStore> store);
  // How much the shape function is told about the inputs; by default everything. With less, shapes
  // are checked less, and mistakes in the inputs are the kernel's to find.
  enum class Known { kNothing, kShapes, kValues };
  OpRunner& ShapesKnow(Known known);

  StatusOr<std::vector<Tensor>> Run();
  StatusOr<Tensor> Run1();  // REQUIRES exactly one output
  const std::shared_ptr<ResourceStore>& resources() const { return resources_; }

 private:
  std::string op_, node_name_, device_type_ = "CPU";
  const Registry& registry_;
  std::shared_ptr<ResourceStore> resources_, step_resources_;
  std::vector<std::vector<Tensor>> args_;
  std::vector<bool> arg_is_list_;
  Attrs attrs_;
  Accelerator accelerator_;  // none where there is no allocator
  Known known_ = Known::kValues;
};

}  // namespace penstock

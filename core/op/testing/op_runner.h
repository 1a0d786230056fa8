// SPDX-License-Identifier: Apache-2.0
//
// OpRunner: runs one op alone, for tests: completes attributes, infers shapes, makes the kernel,
// runs it (waiting up to 10 s for an asynchronous one) and checks that the outputs have the
// inferred shapes and types.
//
//   OpRunner run("Concat");
//   auto y = run.In(Tensor::Scalar<int32_t>(0)).InList({a, b}).Run1();
//
// An op's type, count and list attributes are inferred from the inputs, as the graph builder does.
// For a Ref input pass a tensor holding a ResourceHandle. A runner has a resource store of its own;
// to share one, construct the runner with another runner's `resources()`.
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
  OpRunner& NodeName(string_view name);       // default: the name of the op
  OpRunner& Device(string_view device_type);  // default "CPU"
  // A device with memory of its own, on which kernels run. Inputs and outputs of the runner remain
  // host tensors: it copies them to and from the device, except for the kernel's host_args, strings
  // and handles. (The caller must provide device memory for the variable of a handle.)
  struct Accelerator {
    std::string type;  // "GPU"
    Allocator* allocator = nullptr;
    void* stream = nullptr;
    void* handles = nullptr;
    // Both return when the bytes have arrived; from_device copies after all earlier launches.
    std::function<StatusOr<Tensor>(const Tensor&)> to_device, from_device;
  };
  OpRunner& On(Accelerator accelerator);
  // Sets the step's store, for ops that use resources made by another op of the same step; by
  // default each run has its own.
  OpRunner& StepResources(std::shared_ptr<ResourceStore> store);
  // How much the shape function knows about the inputs; by default everything. If it knows less, it
  // checks less, and the kernel itself must find mistakes in the inputs.
  enum class Known { kNothing, kShapes, kValues };
  OpRunner& SetKnownInputs(Known known);

  StatusOr<std::vector<Tensor>> Run();
  StatusOr<Tensor>
  Run1();  // Runs the op and returns its output. REQUIRES: the op has exactly one output.
  const std::shared_ptr<ResourceStore>& resources() const { return resources_; }

 private:
  std::string op_, node_name_, device_type_ = "CPU";
  const Registry& registry_;
  std::shared_ptr<ResourceStore> resources_, step_resources_;
  std::vector<std::vector<Tensor>> args_;
  std::vector<bool> arg_is_list_;
  Attrs attrs_;
  Accelerator accelerator_;  // no device if `allocator` is null
  Known known_ = Known::kValues;
};

}  // namespace penstock

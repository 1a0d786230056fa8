// SPDX-License-Identifier: Apache-2.0
//
// Shared by the ops on tensor arrays and on stacks: their handles. A handle to an array has three
// forms: a resource (V3), two strings that name it (V2), and a reference to a variable that holds
// these strings (V1). A handle to a stack has the first form (StackV2) or the last one (Stack).
#pragma once

#include <memory>
#include <string>

#include "core/op/kernel.h"
#include "core/op/op_def.h"
#include "kernels/tensor_array/tensor_array.h"

namespace penstock {

// The containers for the resources of a step: tensor arrays and stacks.
inline constexpr char kTensorArrays[] = "_tensor_arrays";
inline constexpr char kStacks[] = "_stacks";

// Returns a handle to `resource` in the form that edges of type `type` need.
StatusOr<Tensor> MakeHandle(KernelContext& ctx, EdgeType type, const std::string& container,
                            const std::string& name, std::shared_ptr<Resource> resource,
                            ResourceHandle::Element element);
// Returns the resource to which input i, a handle in any form, refers. InvalidArgument if the input
// is no handle; an error if the resource does not exist.
StatusOr<std::shared_ptr<Resource>> StepResourceInput(KernelContext& ctx, int i);
template <class R>
StatusOr<std::shared_ptr<R>> StepResourceInputAs(KernelContext& ctx, int i) {
  ASSIGN_OR_RETURN(std::shared_ptr<Resource> resource, StepResourceInput(ctx, i));
  auto typed = std::dynamic_pointer_cast<R>(resource);
  if (typed == nullptr) {
    return InvalidArgument("the handle leads to a ", resource->TypeName(),
                           ", which is not what this op works on");
  }
  return typed;
}
// Returns a name that is unique in this process.
std::string UniqueStepName(const std::string& base);

// The three generations of ops. They differ in the type of the handle, and in the name and type of
// its argument.
enum class OpGeneration { kReference, kStrings, kResource };
ArgDef HandleArg(OpGeneration generation, const char* name = "handle");
// For shape functions: returns the shape of a handle.
PartialShape HandleShape(OpGeneration generation);

}  // namespace penstock

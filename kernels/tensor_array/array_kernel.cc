// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensor_array/array_kernel.h"

#include <atomic>
#include <utility>

#include "core/op/variable.h"

namespace penstock {
namespace {

Tensor NameTensor(const std::string& container, const std::string& name) {
  return Tensor::Vector<std::string>({container, name});
}

StatusOr<std::shared_ptr<Resource>> FindByName(KernelContext& ctx, const Tensor& names) {
  if (names.dtype() != DType::kString || names.num_elements() != 2) {
    return InvalidArgument("a handle must be two strings, is ", names.ToString());
  }
  return ctx.step().step_resources->Lookup(names.data<std::string>()[0],
                                           names.data<std::string>()[1]);
}

}  // namespace

StatusOr<Tensor> MakeHandle(KernelContext& ctx, EdgeType type, const std::string& container,
                            const std::string& name, std::shared_ptr<Resource> resource,
                            ResourceHandle::Element element) {
  if (type.dtype == DType::kString && !type.ref) return NameTensor(container, name);
  ResourceHandle handle{.device = ctx.device_name(),
                        .container = container,
                        .name = name,
                        .type = resource->TypeName(),
                        .elements = {std::move(element)},
                        .resource = std::move(resource)};
  if (type.ref) {
    auto names = std::make_shared<Variable>(name, DType::kString, Shape{2});
    RETURN_IF_ERROR(
        names->Assign(NameTensor(container, name), /*validate_shape=*/true, ctx.origin()));
    handle.type = names->TypeName();
    handle.elements = {{DType::kString, Shape{2}}};
    handle.resource = std::move(names);
  }
  return Tensor::Scalar(std::move(handle));
}

StatusOr<std::shared_ptr<Resource>> StepResourceInput(KernelContext& ctx, int i) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() == DType::kString) return FindByName(ctx, input);
  if (input.dtype() != DType::kResource || input.num_elements() != 1) {
    return InvalidArgument("input ", i, " is no handle: ", input.ToString());
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Resource> resource,
                   ResolveHandle(input.scalar<ResourceHandle>(), *ctx.step().step_resources));
  const auto* names = dynamic_cast<const Variable*>(resource.get());
  if (names == nullptr) return resource;
  ASSIGN_OR_RETURN(const Tensor value, names->Read());
  return FindByName(ctx, value);
}

std::string UniqueStepName(const std::string& base) {
  static std::atomic<int64_t> count{0};
  return StrCat(base, "_", count.fetch_add(1, std::memory_order_relaxed));
}

ArgDef HandleArg(OpGeneration generation, const char* name) {
  if (generation == OpGeneration::kReference) return {name, Ref("string")};
  return {name, generation == OpGeneration::kStrings ? "string" : "resource"};
}

PartialShape HandleShape(OpGeneration generation) {
  return generation == OpGeneration::kResource ? PartialShape::Scalar() : PartialShape({2});
}

}  // namespace penstock

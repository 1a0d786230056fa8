// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/handle_kernel.h"

#include "core/base/mutex.h"
#include "core/op/private_attrs.h"

namespace penstock {

Status HandleKernel::Init(const KernelInit& node) {
  RETURN_IF_ERROR(node.Attr("container", &container_));
  RETURN_IF_ERROR(node.Attr("shared_name", &name_));
  is_ref_ = node.output_types[0].ref;
  if (!name_.empty()) return OkStatus();
  name_ = node.name;
  if (node.attrs.contains(kPrivateContainerAttr))
    return node.Attr(kPrivateContainerAttr, &container_);
  return OkStatus();
}

Status HandleKernel::Compute(KernelContext& ctx) {
  const auto make = [&] { return Make(ctx); };
  ASSIGN_OR_RETURN(std::shared_ptr<Resource> resource,
                   ctx.resources().LookupOrCreate(container_, name_, Type(), make, ctx.origin()));
  MutexLock lock(mu_);
  if (!handle_.valid() || handle_.scalar<ResourceHandle>().resource != resource) {
    RETURN_IF_ERROR(Check(*resource));
    ResourceHandle handle{.device = ctx.device_name(),
                          .container = container_.empty() ? kDefaultContainer : container_,
                          .name = name_,
                          .type = Type(),
                          .resource = std::move(resource)};
    if (is_ref_) handle.elements = {{DType::kString, PartialShape({2})}};
    handle_ = Tensor::Scalar(handle);
  }
  ctx.SetOutput(0, handle_);
  return OkStatus();
}

Status RequireNoTimeout(const KernelInit& node) {
  int64_t timeout_ms = -1;
  RETURN_IF_ERROR(node.Attr("timeout_ms", &timeout_ms));
  if (timeout_ms == -1) return OkStatus();
  return InvalidArgument("Timeout not supported yet. (timeout_ms = ", timeout_ms,
                         "; give the step a deadline)");
}

Status ResourceHandleShape(ShapeScope& s) { return ScalarShape(s); }
Status RefHandleShape(ShapeScope& s) {
  s.set_output(0, PartialShape({2}));
  return OkStatus();
}

ArgType HandleType(HandleForm form) {
  return form == HandleForm::kRef ? Ref("string") : ArgType("resource");
}

}  // namespace penstock

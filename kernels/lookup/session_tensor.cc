// SPDX-License-Identifier: Apache-2.0
//
// GetSessionHandle, GetSessionHandleV2, GetSessionTensor, DeleteSessionTensor: keep tensors on
// their device between the steps of a session, under names that the client stores.
#include <atomic>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/private_attrs.h"
#include "core/op/registry.h"
#include "core/op/resource.h"
#include "core/op/shape_scope.h"
#include "core/op/state_replay.h"

namespace penstock {
namespace {

constexpr char kTypeName[] = "SessionTensor";

struct SessionTensor final : Resource {
  explicit SessionTensor(Tensor t) : value(std::move(t)) {}
  const char* TypeName() const override { return kTypeName; }
  std::string DebugString() const override { return value.ToString(); }
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override { return {value}; }
  const Tensor value;
};

StatusOr<std::shared_ptr<Resource>> MakeSessionTensor(const std::string& name,
                                                      const ReplayValues& values, Env&) {
  RETURN_IF_ERROR(values.Expect(1));
  return std::make_shared<SessionTensor>(values.Get(0));
}
const ResourceMakerDeclaration maker(kTypeName, MakeSessionTensor);

// The base of the kernels. `container_` is the session's container, which is dropped with the
// session. If each session has a ResourceStore of its own, all sessions use the same container
// name.
class SessionKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    if (node.attrs.contains(kPrivateContainerAttr)) {
      return node.Attr(kPrivateContainerAttr, &container_);
    }
    return OkStatus();
  }

 protected:
  static StatusOr<std::string> Handle(const KernelContext& ctx) {
    if (ctx.input(0).num_elements() == 1) return ctx.input(0).scalar<std::string>();
    return InvalidArgument("handle must be a scalar, has shape ", ctx.input(0).shape().ToString());
  }

  std::string container_ = "session_tensors";
};

// The handle has TensorFlow's form "node;number;device", because some clients parse it.
template <bool kResource>
class GetSessionHandleKernel final : public SessionKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    static std::atomic<int64_t> next{0};
    const std::string handle = StrCat(ctx.node_name(), ";", next++, ";", ctx.device_name());
    const auto make = [&ctx]() -> StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<SessionTensor>(ctx.input(0));
    };
    ASSIGN_OR_RETURN(
        std::shared_ptr<Resource> tensor,
        ctx.resources().LookupOrCreate(container_, handle, kTypeName, make, ctx.origin()));
    if constexpr (kResource) {
      ctx.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = ctx.device_name(),
                                                     .container = container_,
                                                     .name = handle,
                                                     .type = kTypeName,
                                                     .resource = std::move(tensor)}));
    } else {
      ctx.SetOutput(0, Tensor::Scalar(handle));
    }
    return OkStatus();
  }
};

class GetSessionTensorKernel final : public SessionKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string handle, Handle(ctx));
    const auto found = ctx.resources().Lookup(container_, handle);
    const auto tensor = found.ok() ? std::dynamic_pointer_cast<SessionTensor>(*found) : nullptr;
    if (tensor == nullptr) {
      return InvalidArgument("The tensor with handle '", handle, "' is not in the session store.");
    }
    if (tensor->value.dtype() != ctx.output_type(0).dtype) {
      return InvalidArgument("the tensor with handle '", handle, "' is of type ",
                             Name(tensor->value.dtype()), ", not ", Name(ctx.output_type(0).dtype));
    }
    ctx.SetOutput(0, tensor->value);
    return OkStatus();
  }
};

class DeleteSessionTensorKernel final : public SessionKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string handle, Handle(ctx));
    if (ctx.resources().Remove(container_, handle, ctx.origin()).ok()) return OkStatus();
    return InvalidArgument("Failed to delete a session tensor: ", handle,
                           " is not in the session store.");
  }
};

OpDef HandleOp(const char* type) {
  return {
      .doc =
          "Keeps a tensor for later steps of the session, and returns a handle that names "
          "it.",
      .inputs = {{"value", "T"}},
      .outputs = {{"handle", type}},
      .types = {{"T", kAllTypes}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = true,
      .in_session = true,
  };
}

}  // namespace

OP(GetSessionHandle) { return HandleOp("string"); }
OP(GetSessionHandleV2) { return HandleOp("resource"); }
KERNEL_ANY_TYPE(GetSessionHandle, GetSessionHandleKernel<false>);
KERNEL_ANY_TYPE(GetSessionHandleV2, GetSessionHandleKernel<true>);

OP(GetSessionTensor) {
  return {
      .doc = "Returns a tensor that GetSessionHandle kept.",
      .inputs = {{"handle", "string"}},
      .outputs = {{"value", "dtype"}},
      .types = {{"dtype", kAllTypes}},
      .shape = UnknownShape,
      .gradient = NoGradient,
      .stateful = true,
      .in_session = true,
      .untestable_alone = "reads what another op kept: kernels/lookup has its tests",
  };
}
KERNEL_ANY_TYPE(GetSessionTensor, GetSessionTensorKernel);

OP(DeleteSessionTensor) {
  return {
      .doc = "Deletes a tensor that GetSessionHandle kept.",
      .inputs = {{"handle", "string"}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
      .in_session = true,
      .untestable_alone = "reads what another op kept: kernels/lookup has its tests",
  };
}
KERNEL_ANY_TYPE(DeleteSessionTensor, DeleteSessionTensorKernel);

}  // namespace penstock

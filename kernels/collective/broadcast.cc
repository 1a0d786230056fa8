// SPDX-License-Identifier: Apache-2.0
//
// CollectiveBcastSend and CollectiveBcastRecv, and their V2 forms: one rank of the group sends, the
// others receive.
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/collective/collective_kernel.h"

namespace penstock {
namespace {

const DTypes kBroadcast = {DType::kBool,   DType::kFloat, DType::kHalf,
                           DType::kDouble, DType::kInt32, DType::kInt64};

template <int kKeysInput>
class BroadcastSendKernel final : public CollectiveKernel {
 public:
  BroadcastSendKernel() : CollectiveKernel(kKeysInput) {}

  Status Init(const KernelInit& node) override {
    if (kKeysInput < 0) RETURN_IF_ERROR(node.Attr("shape", &shape_));
    return CollectiveKernel::Init(node);
  }

 private:
  Status Fill(KernelContext& ctx, CollectiveCall* call) override {
    call->kind = CollectiveKind::kBroadcast;
    call->is_source = true;
    TakeInput(ctx, call);
    if (!shape_.Compatible(PartialShape(call->shape))) {
      return InvalidArgument("the input has shape ", call->shape.ToString(),
                             ", the attribute shape says ", shape_.ToString());
    }
    return OkStatus();
  }

  PartialShape shape_;
};

// `kKeysInput`: the index of the input "group_size"; the shape is the third input after it. -1 for
// V1, whose shape is an attribute.
template <int kKeysInput>
class BroadcastReceiveKernel final : public CollectiveKernel {
 public:
  BroadcastReceiveKernel() : CollectiveKernel(kKeysInput) {}

  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("T", &dtype_));
    if (kKeysInput < 0) RETURN_IF_ERROR(node.Attr("shape", &shape_));
    return CollectiveKernel::Init(node);
  }

 private:
  Status Fill(KernelContext& ctx, CollectiveCall* call) override {
    call->kind = CollectiveKind::kBroadcast;
    call->dtype = dtype_;
    if (kKeysInput >= 0) {
      ASSIGN_OR_RETURN(call->shape, ShapeOf(ctx.input(kKeysInput + 3)));
      return OkStatus();
    }
    if (!shape_.fully_known()) {
      return InvalidArgument("the attribute shape must be fully known, is ", shape_.ToString());
    }
    call->shape = shape_.ToShape();
    return OkStatus();
  }

  static StatusOr<Shape> ShapeOf(const Tensor& dims) {
    if (dims.rank() != 1) {
      return InvalidArgument("input 'shape' must be a vector, has shape ", dims.shape().ToString());
    }
    if (dims.dtype() == DType::kInt64) return Shape::Make(dims.flat<int64_t>());
    if (dims.dtype() != DType::kInt32) {
      return InvalidArgument("input 'shape' must be int32 or int64, is ", Name(dims.dtype()));
    }
    const auto ints = dims.flat<int32_t>();
    return Shape::Make(std::vector<int64_t>(ints.begin(), ints.end()));
  }

  DType dtype_ = DType::kInvalid;
  PartialShape shape_;
};

OP(CollectiveBcastSend) {
  OpDef op = CollectiveOp(
      "Sends the input to the CollectiveBcastRecv of all other ranks of the group, and "
      "returns it.",
      kBroadcast);
  op.inputs = {{"input", "T"}};
  op.attrs.push_back({"shape", Shapes{}});
  op.shape = ShapeFromAttr;
  return op;
}

OP(CollectiveBcastRecv) {
  OpDef op = CollectiveOp(
      "Receives the tensor that the group's CollectiveBcastSend sends. `shape` must be "
      "the shape of that tensor.",
      kBroadcast);
  op.attrs.push_back({"shape", Shapes{}});
  op.shape = ShapeFromAttr;
  return op;
}

OP(CollectiveBcastSendV2) {
  OpDef op = CollectiveOpV2(
      "The same as CollectiveBcastSend, with the group and the instance as inputs.", kBroadcast);
  op.inputs = {
      {"input", "T"}, {"group_size", "int32"}, {"group_key", "int32"}, {"instance_key", "int32"}};
  op.shape = SameShape;
  return op;
}

OP(CollectiveBcastRecvV2) {
  OpDef op = CollectiveOpV2(
      "The same as CollectiveBcastRecv, with the group, the instance and the shape as "
      "inputs.",
      kBroadcast);
  op.inputs = {{"group_size", "int32"},
               {"group_key", "int32"},
               {"instance_key", "int32"},
               {"shape", "Tshape"}};
  op.types.push_back({"Tshape", {DType::kInt32, DType::kInt64}, DType::kInt32});
  op.shape = UnknownShape;
  return op;
}

KERNEL_ANY_TYPE(CollectiveBcastSend, BroadcastSendKernel<-1>);
KERNEL_ANY_TYPE(CollectiveBcastRecv, BroadcastReceiveKernel<-1>);
KERNEL_ANY_TYPE(CollectiveBcastSendV2, BroadcastSendKernel<1>);
KERNEL_ANY_TYPE(CollectiveBcastRecvV2, BroadcastReceiveKernel<0>);
KERNEL_DEF((OnGpu("CollectiveBcastSend", Make<BroadcastSendKernel<-1>>)));
KERNEL_DEF({.op = "CollectiveBcastRecv",
            .device = "GPU",
            .host_args = {"data"},
            .make = Make<BroadcastReceiveKernel<-1>>});
KERNEL_DEF((OnGpuV2("CollectiveBcastSendV2", Make<BroadcastSendKernel<1>>)));
KERNEL_DEF({.op = "CollectiveBcastRecvV2",
            .device = "GPU",
            .host_args = {"group_size", "group_key", "instance_key", "shape", "data"},
            .make = Make<BroadcastReceiveKernel<0>>});

}  // namespace
}  // namespace penstock

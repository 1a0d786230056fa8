// SPDX-License-Identifier: Apache-2.0
//
// CollectiveGather (all-gather) and its V2.
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/collective/collective_kernel.h"

namespace penstock {
namespace {

const DTypes kGathered = {DType::kFloat, DType::kHalf, DType::kDouble, DType::kInt32,
                          DType::kInt64};

template <int kKeysInput>
class AllGatherKernel final : public CollectiveKernel {
 public:
  AllGatherKernel() : CollectiveKernel(kKeysInput) {}

 private:
  Status Fill(KernelContext& ctx, CollectiveCall* call) override {
    call->kind = CollectiveKind::kAllGather;
    TakeInput(ctx, call);
    if (call->shape.rank() < 1) {
      return InvalidArgument("a scalar cannot be gathered: the input must have a first dimension, ",
                             "along which the tensors of all ranks are joined");
    }
    return OkStatus();
  }
};

Status GatheredShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.WithRankAtLeast(0, 1));
  if (shape.known_rank()) shape.set_dim(0, PartialShape::kUnknown);
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OP(CollectiveGather) {
  OpDef op = CollectiveOp(
      "The tensors of all ranks, one after the other along the first dimension, in order of the "
      "ranks' devices' names. `shape` is that of the result.",
      kGathered);
  op.inputs = {{"input", "T"}};
  op.attrs.push_back({"shape", Shapes{}});
  op.shape = ShapeFromAttr;
  return op;
}

OP(CollectiveGatherV2) {
  OpDef op = CollectiveOpV2(
      "As CollectiveGather, with the group and the instance as inputs. `is_stateless` is a hint "
      "that changes nothing here; `ordering_token` only orders.",
      kGathered);
  op.inputs = {{"input", "T"},
               {"group_size", "int32"},
               {"group_key", "int32"},
               {"instance_key", "int32"},
               {"ordering_token", Repeat("Nordering_token", "resource")}};
  op.attrs.push_back({"is_stateless", false});
  op.attrs.push_back({"Nordering_token", Ints{.min = 0}, int64_t{0}});
  op.shape = GatheredShape;
  return op;
}

KERNEL_ANY_TYPE(CollectiveGather, AllGatherKernel<-1>);
KERNEL_ANY_TYPE(CollectiveGatherV2, AllGatherKernel<1>);
KERNEL_DEF({.op = "CollectiveGather",
            .device = "GPU",
            .host_args = {"input", "data"},
            .make = Make<AllGatherKernel<-1>>});
KERNEL_DEF({.op = "CollectiveGatherV2",
            .device = "GPU",
            .host_args = {"input", "group_size", "group_key", "instance_key", "data"},
            .make = Make<AllGatherKernel<1>>});

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// CollectiveGather (all-gather) and its V2.
#include "core/op/registry.h"
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

OP(CollectiveGather) {
  OpDef op = CollectiveOp(
      "Concatenates the tensors of all ranks along the first dimension, in the order of "
      "the names of the ranks' devices. `shape` is the shape of the result.",
      kGathered);
  op.inputs = {{"input", "T"}};
  op.attrs.push_back({"shape", Shapes{}});
  op.shape = ShapeFromAttr;
  return op;
}

OP(CollectiveGatherV2) {
  OpDef op = WithGroupInputs(
      CollectiveOpV2("The same as CollectiveGather, with the group and the instance as inputs. "
                     "`is_stateless` has no effect here; `ordering_token` only orders ops.",
                     kGathered));
  op.shape = UnknownFirstDimension;
  return op;
}

KERNEL_ANY_TYPE(CollectiveGather, AllGatherKernel<-1>);
KERNEL_ANY_TYPE(CollectiveGatherV2, AllGatherKernel<1>);
KERNEL_DEF((OnGpu("CollectiveGather", Make<AllGatherKernel<-1>>)));
KERNEL_DEF((OnGpuV2("CollectiveGatherV2", Make<AllGatherKernel<1>>)));

}  // namespace
}  // namespace penstock

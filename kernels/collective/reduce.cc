// SPDX-License-Identifier: Apache-2.0
//
// CollectiveReduce (all-reduce), its V2, and CollectiveReduceScatterV2.
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/collective/collective_kernel.h"

namespace penstock {
namespace {

const DTypes kReduced = {DType::kBfloat16, DType::kFloat, DType::kHalf,
                         DType::kDouble,   DType::kInt32, DType::kInt64};

template <int kKeysInput>
class AllReduceKernel final : public ReducingKernel {
 public:
  AllReduceKernel() : ReducingKernel(kKeysInput) {}

 private:
  Status Fill(KernelContext& ctx, CollectiveCall* call) override {
    call->kind = CollectiveKind::kAllReduce;
    FillMerge(call);
    TakeInput(ctx, call);
    return OkStatus();
  }
};

class ReduceScatterKernel final : public ReducingKernel {
 public:
  ReduceScatterKernel() : ReducingKernel(1) {}

 private:
  Status Fill(KernelContext& ctx, CollectiveCall* call) override {
    call->kind = CollectiveKind::kReduceScatter;
    FillMerge(call);
    TakeInput(ctx, call);
    if (call->shape.rank() < 1 || call->shape.dim(0) % call->group_size != 0) {
      return InvalidArgument("the first dimension of the input must be a multiple of group_size=",
                             call->group_size, ", has shape ", call->shape.ToString());
    }
    return OkStatus();
  }
};

OpDef ReduceV2(std::string doc) {
  OpDef op = WithGroupInputs(WithMerge(CollectiveOpV2(std::move(doc), kReduced)));
  op.attrs.push_back({"max_subdivs_per_device", int64_t{-1}});
  return op;
}

OP(CollectiveReduce) {
  OpDef op = WithMerge(
      CollectiveOp("Reduces the tensors of all `group_size` ranks of a group element by element. "
                   "Each rank gets the same bits. `wait_for` and `subdiv_offsets` have no effect "
                   "here.",
                   kReduced));
  op.inputs = {{"input", "T"}};
  op.attrs.push_back({"subdiv_offsets", IntList{}});
  op.attrs.push_back({"wait_for", IntList{}, std::vector<int64_t>{}});
  op.shape = SameShape;
  return op;
}

OP(CollectiveReduceV2) {
  OpDef op = ReduceV2(
      "The same as CollectiveReduce, with the group and the instance as inputs. "
      "`max_subdivs_per_device` and `is_stateless` have no effect here; "
      "`ordering_token` only orders ops.");
  op.shape = SameShape;
  return op;
}

OP(CollectiveReduceScatterV2) {
  OpDef op = ReduceV2(
      "Reduces the tensors of all ranks element by element and scatters the result "
      "along the first dimension: the n-th rank, in the order of the names of the "
      "ranks' devices, gets the n-th part.");
  op.shape = UnknownFirstDimension;
  return op;
}

KERNEL_ANY_TYPE(CollectiveReduce, AllReduceKernel<-1>);
KERNEL_ANY_TYPE(CollectiveReduceV2, AllReduceKernel<1>);
KERNEL_ANY_TYPE(CollectiveReduceScatterV2, ReduceScatterKernel);
KERNEL_DEF((OnGpu("CollectiveReduce", Make<AllReduceKernel<-1>>)));
KERNEL_DEF((OnGpuV2("CollectiveReduceV2", Make<AllReduceKernel<1>>)));
KERNEL_DEF((OnGpuV2("CollectiveReduceScatterV2", Make<ReduceScatterKernel>)));

}  // namespace
}  // namespace penstock

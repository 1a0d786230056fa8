// SPDX-License-Identifier: Apache-2.0
//
// CollectiveKernel: what the kernels of collective ops share: they find the step's Collectives, say
// which group and instance they are of, and hand over what their rank brings.
//
// A kernel of a V1 op knows group and instance from its attributes, that of a V2 op from its
// inputs 1 to 3 (0 to 2 where it receives a broadcast).
#pragma once

#include <memory>
#include <string>

#include "core/op/kernel.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/runtime/collective.h"

namespace penstock {

class CollectiveKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override;
  void ComputeAsync(KernelContext& ctx, Done done) final;

 protected:
  // V2: the number of the input "group_size"; -1: V1.
  explicit CollectiveKernel(int keys_input = -1) : keys_input_(keys_input) {}
  // Fills in kind, input, dtype, shape and what else is the op's own.
  virtual Status Fill(KernelContext& ctx, CollectiveCall* call) = 0;
  // The rank's tensor, as input 0.
  static void TakeInput(KernelContext& ctx, CollectiveCall* call);

 private:
  Status Prepare(KernelContext& ctx, CollectiveCall* call);

  const int keys_input_;
  int64_t group_size_ = 0, group_key_ = 0, instance_key_ = 0;
  float timeout_seconds_ = 0;
};

// Those that merge what the ranks bring: "merge_op", "final_op".
class ReducingKernel : public CollectiveKernel {
 public:
  Status Init(const KernelInit& node) override;

 protected:
  using CollectiveKernel::CollectiveKernel;
  void FillMerge(CollectiveCall* call) const;

 private:
  MergeOp merge_ = MergeOp::kAdd;
  bool divide_ = false;
};

// Declarations that the ops share.
OpDef CollectiveOp(std::string doc, DTypes types);    // V1
OpDef CollectiveOpV2(std::string doc, DTypes types);  // V2, without its inputs
OpDef WithMerge(OpDef op);                            // adds merge_op and final_op
// Adds the inputs of V2: the tensor, the group, the instance and the ordering tokens.
OpDef WithGroupInputs(OpDef op);
// The shape of the input, but for its first dimension.
Status UnknownFirstDimension(ShapeScope& s);
// The kernel for GPUs of an op with the input "input": all arguments are in the host's memory.
KernelDef OnGpu(std::string op, std::unique_ptr<Kernel> (*make)());
KernelDef OnGpuV2(std::string op, std::unique_ptr<Kernel> (*make)());

}  // namespace penstock

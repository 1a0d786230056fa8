// SPDX-License-Identifier: Apache-2.0
//
// CollectiveKernel: the base of the kernels of collective ops. It finds the step's Collectives,
// fills in the group and the instance, and passes on the tensor of its rank.
//
// The kernel of a V1 op reads group and instance from its attributes, that of a V2 op from its
// inputs 1 to 3 (inputs 0 to 2 if it receives a broadcast).
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
  // `keys_input`: for V2 ops, the index of the input "group_size"; -1 for V1 ops.
  explicit CollectiveKernel(int keys_input = -1) : keys_input_(keys_input) {}
  // Fills in kind, input, dtype, shape and the other fields that only this op needs.
  virtual Status Fill(KernelContext& ctx, CollectiveCall* call) = 0;
  // Sets the call's input, dtype and shape from input 0.
  static void TakeInput(KernelContext& ctx, CollectiveCall* call);

 private:
  Status Prepare(KernelContext& ctx, CollectiveCall* call);

  const int keys_input_;
  int64_t group_size_ = 0, group_key_ = 0, instance_key_ = 0;
  float timeout_seconds_ = 0;
};

// The base of kernels that merge the tensors of the ranks. Reads the attributes "merge_op" and
// "final_op".
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

// Return the parts of op definitions that the collective ops share.
OpDef CollectiveOp(std::string doc, DTypes types);    // V1
OpDef CollectiveOpV2(std::string doc, DTypes types);  // V2, without its inputs
OpDef WithMerge(OpDef op);                            // adds merge_op and final_op
// Adds the inputs of V2 ops: the tensor, the group, the instance and the ordering tokens.
OpDef WithGroupInputs(OpDef op);
// Shape function: sets output 0 to the shape of input 0, with an unknown first dimension.
Status UnknownFirstDimension(ShapeScope& s);
// Return the GPU kernel of a V1 or V2 op with the input "input". All its arguments are in host
// memory.
KernelDef OnGpu(std::string op, std::unique_ptr<Kernel> (*make)());
KernelDef OnGpuV2(std::string op, std::unique_ptr<Kernel> (*make)());

}  // namespace penstock

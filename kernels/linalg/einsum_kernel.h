// SPDX-License-Identifier: Apache-2.0
//
// Einsum without the arithmetic. Dimensions that no other tensor has are summed away first; what is
// left of two inputs is brought into the order of a batch of matrix products, and their result into
// the order of the output. Nothing is copied where the order is right already.
#pragma once

#include "core/op/kernel.h"
#include "kernels/engine/reduction.h"
#include "kernels/linalg/einsum_equation.h"
#include "kernels/math/matmul.h"

namespace penstock {

class EinsumKernel : public Kernel {
 public:
  EinsumKernel(const ReductionLoop& sum, MultiplyFn multiply) : sum_(sum), multiply_(multiply) {}
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) override;

 private:
  // A dense tensor, each of whose dimensions has a label of its own and is not 1.
  struct Operand {
    Tensor value;
    Labels labels;
  };

  StatusOr<Operand> Input(KernelContext& ctx, const EinsumLabels& all, int i) const;
  StatusOr<Operand> WithoutRepeats(KernelContext& ctx, const Tensor& value, const Labels& labels,
                                   const EinsumLabels& all) const;
  StatusOr<Operand> SumAway(KernelContext& ctx, Operand x, const std::vector<int64_t>& axes) const;
  StatusOr<Operand> Multiplied(KernelContext& ctx, const Operand& a, const Operand& b,
                               const EinsumLabels& all) const;

  const ReductionLoop& sum_;
  const MultiplyFn multiply_;
  EinsumEquation equation_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The base of the Einsum kernels: everything but the arithmetic. The base sums over the dimensions
// that only one tensor has, transposes two inputs to the form of a batched matrix product, and
// transposes the product to the order of the output. A tensor that has the right order is not
// copied.
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
  // A dense tensor. Its dimensions have distinct labels, and none is of size 1.
  struct Operand {
    Tensor value;
    Labels labels;
  };

  StatusOr<Operand> Input(KernelContext& ctx, const EinsumLabels& all, int i) const;
  StatusOr<Operand> WithoutRepeats(KernelContext& ctx, const Tensor& value, const Labels& labels,
                                   const EinsumLabels& all) const;
  StatusOr<Operand> SumOverAxes(KernelContext& ctx, Operand x,
                                const std::vector<int64_t>& axes) const;
  StatusOr<Operand> MultiplyOperands(KernelContext& ctx, const Operand& a, const Operand& b,
                                     const EinsumLabels& all) const;

  const ReductionLoop& sum_;
  const MultiplyFn multiply_;
  EinsumEquation equation_;
};

}  // namespace penstock

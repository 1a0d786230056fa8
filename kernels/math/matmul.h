// SPDX-License-Identifier: Apache-2.0
//
// The kernels of MatMul and its batched forms. They check the shapes, and call a function that
// multiplies on the device: gemm.h on the CPU, cuBLAS on the GPU.
#pragma once

#include <vector>

#include "core/op/kernel.h"
#include "kernels/math/gemm.h"

namespace penstock {

// The pairs of matrices to multiply: matrix i of the result is the product of the matrices a[i] and
// b[i] of the operands.
struct MatrixPairs {
  std::vector<int64_t> a, b;
};

using MultiplyFn = Status (*)(KernelContext& ctx, const Product& product, const MatrixPairs& pairs,
                              const Tensor& a, const Tensor& b, Tensor* c);

// Returns a half, bfloat16 or float tensor as float.
StatusOr<Tensor> AsFloats(KernelContext& ctx, const Tensor& x);

// Base of ops that multiply two matrices, inputs 0 and 1, with the attributes transpose_a and
// transpose_b.
class TwoMatrixKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override;

 protected:
  Side a_side() const { return a_; }
  Side b_side() const { return b_; }
  // Returns the sizes of the product of the inputs. InvalidArgument, with TensorFlow's text, if
  // they are no matrices, or do not fit.
  StatusOr<Product> ProductOf(const KernelContext& ctx) const;

 private:
  Side a_ = Side::kPlain, b_ = Side::kPlain;
};

class MatMulKernel : public TwoMatrixKernel {
 public:
  explicit MatMulKernel(MultiplyFn multiply) : multiply_(multiply) {}
  Status Compute(KernelContext& ctx) override;

 private:
  const MultiplyFn multiply_;
};

// Multiplies batches of matrices. The dimensions before the last two broadcast; BatchMatMul
// requires that they are equal.
class BatchMatMulKernel : public Kernel {
 public:
  BatchMatMulKernel(MultiplyFn multiply, bool broadcasts)
      : multiply_(multiply), broadcasts_(broadcasts) {}
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) override;

 private:
  const MultiplyFn multiply_;
  const bool broadcasts_;
  Side a_ = Side::kPlain, b_ = Side::kPlain;
};

// A kernel class for KERNEL; `kMultiply` is a template over the element type.
template <MultiplyFn kMultiply>
struct MatMulOf final : MatMulKernel {
  MatMulOf() : MatMulKernel(kMultiply) {}
};
template <MultiplyFn kMultiply, bool kBroadcasts>
struct BatchMatMulOf final : BatchMatMulKernel {
  BatchMatMulOf() : BatchMatMulKernel(kMultiply, kBroadcasts) {}
};

}  // namespace penstock

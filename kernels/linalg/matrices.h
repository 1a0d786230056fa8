// SPDX-License-Identifier: Apache-2.0
//
// The base of the linear algebra kernels: batches of matrices in the last two dimensions. Eigen
// computes each matrix on its own; the thread pool computes several at once.
//
// An op states the shapes of its outputs for one matrix, and how to compute them:
//   template <class T>
//   struct MatrixInverse final : MatrixKernel<T> {
//     Status Outputs(const MatrixSizes& in, OutputDims* out) const override;
//     Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override;
//   };
// Batch dimensions of several inputs must agree, or broadcast if the kernel says so.
#pragma once

#include <Eigen/Core>
#include <complex>
#include <vector>

#include "core/op/kernel.h"

namespace penstock {

struct MatrixSize {
  int64_t rows = 0, cols = 0;
  bool square() const { return rows == cols; }
};
using MatrixSizes = std::vector<MatrixSize>;
// For each output, its dimensions after those of the batch: two for a matrix, one for a vector,
// none for a scalar.
using OutputDims = std::vector<Dims>;

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixInputs = std::vector<Eigen::Map<const RowMajor<T>>>;
// The output matrices of one call. A vector is passed as a matrix of one column.
template <class T>
using MatrixOutputs = std::vector<Eigen::Map<RowMajor<T>>>;

class MatrixKernelBase : public Kernel {
 public:
  // `num_matrices`: the number of inputs, from input 0 on, that are matrices. `broadcasts`: whether
  // their batch dimensions may differ and broadcast.
  MatrixKernelBase(int num_matrices, bool broadcasts)
      : num_matrices_(num_matrices), broadcasts_(broadcasts) {}
  Status Compute(KernelContext& ctx) final;

 protected:
  // Reads the scalar input that follows the matrices, if the op has one. Called once for the whole
  // batch.
  virtual Status ReadScalar(const KernelContext& ctx, double* scalar) const { return OkStatus(); }
  virtual Status Outputs(const MatrixSizes& in, OutputDims* out) const = 0;
  virtual Status ComputeRaw(const std::vector<const void*>& in, const MatrixSizes& in_sizes,
                            const std::vector<void*>& out, const MatrixSizes& out_sizes,
                            double scalar) const = 0;

 private:
  const int num_matrices_;
  const bool broadcasts_;
};

template <class T>
class MatrixKernel : public MatrixKernelBase {
 public:
  explicit MatrixKernel(int num_matrices = 1, bool broadcasts = false)
      : MatrixKernelBase(num_matrices, broadcasts) {}

 protected:
  virtual Status ComputeOne(const MatrixInputs<T>& in, double scalar,
                            MatrixOutputs<T>& out) const = 0;

 private:
  Status ComputeRaw(const std::vector<const void*>& in, const MatrixSizes& in_sizes,
                    const std::vector<void*>& out, const MatrixSizes& out_sizes,
                    double scalar) const final {
    MatrixInputs<T> inputs;
    MatrixOutputs<T> outputs;
    for (size_t i = 0; i < in.size(); ++i) {
      inputs.emplace_back(static_cast<const T*>(in[i]), in_sizes[i].rows, in_sizes[i].cols);
    }
    for (size_t i = 0; i < out.size(); ++i) {
      outputs.emplace_back(static_cast<T*>(out[i]), out_sizes[i].rows, out_sizes[i].cols);
    }
    return ComputeOne(inputs, scalar, outputs);
  }
};

// For a kernel's Outputs. Returns InvalidArgument, with TensorFlow's text, unless the matrix is
// square.
Status CheckSquare(const MatrixSize& size);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The engine of the linear algebra ops: batches of matrices in the last two dimensions, each
// handled on its own by Eigen, side by side on the thread pool.
//
// An op states the shapes of its outputs for one matrix and what becomes of it:
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
// The dimensions of each output after those of the batch: a matrix, a vector or nothing.
using OutputDims = std::vector<Dims>;

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixInputs = std::vector<Eigen::Map<const RowMajor<T>>>;
// A vector is a matrix of one column.
template <class T>
using MatrixOutputs = std::vector<Eigen::Map<RowMajor<T>>>;

class MatrixKernelBase : public Kernel {
 public:
  // The first `num_matrices` inputs are matrices.
  MatrixKernelBase(int num_matrices, bool broadcasts)
      : num_matrices_(num_matrices), broadcasts_(broadcasts) {}
  Status Compute(KernelContext& ctx) final;

 protected:
  // Reads the input after the matrices, if there is one; once for the whole batch.
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

// For Outputs: one square matrix, InvalidArgument in TensorFlow's words otherwise.
Status CheckSquare(const MatrixSize& size);

}  // namespace penstock

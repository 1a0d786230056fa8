// SPDX-License-Identifier: Apache-2.0
//
// Lu: the triangular factors of matrices with exchanged rows.
#include <numeric>

#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

template <class T>
class LuKernel final : public MatrixKernelBase {
 public:
  LuKernel() : MatrixKernelBase(1, /*broadcasts=*/false) {}
  Status Init(const KernelInit& node) override {
    wide_ = node.output_types[1].dtype == DType::kInt64;
    return OkStatus();
  }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[0].rows, in[0].cols}, {in[0].rows}};
    if (in[0].rows > kMaxLapackDim) return InvalidArgument("matrices with 2^31 or more rows");
    return CheckSquare(in[0]);
  }
  Status ComputeRaw(const std::vector<const void*>& in, const MatrixSizes& in_sizes,
                    const std::vector<void*>& out, const MatrixSizes&, double) const override {
    const int64_t n = in_sizes[0].rows;
    if (n == 0) return OkStatus();
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic> lu =
        Eigen::Map<const RowMajor<T>>(static_cast<const T*>(in[0]), n, n);
    std::vector<int> pivots(n);
    LuFactor(n, lu.data(), pivots.data());
    for (int64_t i = 0; i < n; ++i) {
      if (lu(i, i) == T(0)) return InvalidArgument("Input is not invertible.");
    }
    Eigen::Map<RowMajor<T>>(static_cast<T*>(out[0]), n, n) = lu;
    if (wide_) {
      Permute(pivots, static_cast<int64_t*>(out[1]));
    } else {
      Permute(pivots, static_cast<int32_t*>(out[1]));
    }
    return OkStatus();
  }

 private:
  // Sets element i to the row of the input that was moved to row i.
  template <class Index>
  static void Permute(const std::vector<int>& pivots, Index* rows) {
    std::iota(rows, rows + pivots.size(), Index{0});
    for (size_t i = 0; i < pivots.size(); ++i) std::swap(rows[i], rows[pivots[i] - 1]);
  }

  bool wide_ = false;
};

Status LuShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape m, MatrixShape::Of(s, 0));
  ASSIGN_OR_RETURN(const int64_t n, m.Side());
  s.set_output(0, m.With({n, n}));
  s.set_output(1, m.With({n}));
  return OkStatus();
}

OP(Lu) {
  return {
      .doc =
          "Factorizes each matrix, with its rows permuted, into a lower triangular factor "
          "with ones on the diagonal and an upper triangular factor, both stored in `lu`. "
          "Row i of their product is row p[i] of the input.",
      .inputs = {{"input", "T"}},
      .outputs = {{"lu", "T"}, {"p", "output_idx_type"}},
      .types = {{"T", kMatrixTypes}, {"output_idx_type", kIndex, DType::kInt32}},
      .shape = LuShape,
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 1, 2, 3, 2, 0.5, -1, 1}}}}}},
  };
}
KERNEL(Lu, LuKernel, MATRIX_TYPES);

}  // namespace
}  // namespace penstock

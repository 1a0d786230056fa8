// SPDX-License-Identifier: Apache-2.0
//
// Eig: eigenvalues and eigenvectors of general matrices.
#include "core/op/shape_scope.h"
#include "kernels/linalg/eigenvalues.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

template <class T>
using ComplexOf = std::complex<typename Eigen::NumTraits<T>::Real>;

// The outputs are complex for every input type.
template <class T>
class EigKernel final : public MatrixKernelBase {
 public:
  EigKernel() : MatrixKernelBase(1, /*broadcasts=*/false) {}
  Status Init(const KernelInit& node) override {
    wide_ = node.output_types[0].dtype == DType::kComplex128;
    return node.Attr("compute_v", &vectors_);
  }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    const int64_t n = in[0].rows;
    // If vectors are not wanted, output 1 is empty for every matrix.
    *out = {{n}, vectors_ ? Dims{n, n} : Dims{0}};
    if (n > kMaxLapackDim) return InvalidArgument("matrices with 2^31 or more rows");
    return CheckSquare(in[0]);
  }
  Status ComputeRaw(const std::vector<const void*>& in, const MatrixSizes& in_sizes,
                    const std::vector<void*>& out, const MatrixSizes&, double) const override {
    using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    const int64_t n = in_sizes[0].rows;
    if (n == 0) return OkStatus();
    Columns a = Eigen::Map<const RowMajor<T>>(static_cast<const T*>(in[0]), n, n);
    ComplexColumns values(n, 1), vectors(vectors_ ? n : 0, n);
    if (!a.allFinite() ||
        !Eigenvalues(n, a.data(), values.data(), vectors_ ? vectors.data() : nullptr)) {
      return InvalidArgument(
          "Eigen decomposition was not successful. The input might not be valid.");
    }
    Store(values, out[0]);
    if (vectors_) Store(vectors, out[1]);
    return OkStatus();
  }

 private:
  using ComplexColumns = Eigen::Matrix<ComplexOf<T>, Eigen::Dynamic, Eigen::Dynamic>;

  void Store(const ComplexColumns& from, void* to) const {
    const auto store = [&]<class C>(C* out) {
      Eigen::Map<RowMajor<C>>(out, from.rows(), from.cols()) = from.template cast<C>();
    };
    if (wide_) {
      store(static_cast<std::complex<double>*>(to));
    } else {
      store(static_cast<std::complex<float>*>(to));
    }
  }

  bool vectors_ = true, wide_ = false;
};

Status EigShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape m, MatrixShape::Of(s, 0));
  ASSIGN_OR_RETURN(const int64_t n, m.Side());
  s.set_output(0, m.With({n}));
  s.set_output(1, s.attr<bool>("compute_v") ? m.With({n, n}) : PartialShape());
  return OkStatus();
}

// Assumes that all eigenvalues differ; the eigenvectors have length 1.
Gradients EigGradient(const GradientScope& g) {
  const bool vectors = g.attr<bool>("compute_v");
  const Output e = g.y(0);
  const Output v =
      vectors ? g.y(1)
              : Call("Eig", {g.x()}, {{"compute_v", true}, {"Tout", e.dtype()}}).Sibling(1);
  const Output vh = Adjoint(v);
  Output inner = DiagonalMatrix(g.dy(0));
  if (vectors) {
    const Output gaps = RowVectors(e) - ColumnVectors(e);
    const Output f = Conj(WithDiagonal(SafeReciprocal(gaps), ZerosLike(e)));
    const Output turned = Product(vh, g.dy(1));
    const Output diagonal = DiagonalOf(turned);
    const Output lengths =
        DiagonalMatrix((diagonal + Conj(diagonal)) * Cast(g.Const(0.5), e.dtype()));
    inner = inner + f * (turned - Product(Product(vh, v), lengths));
  }
  return {Cast(Call("MatrixSolve", {vh, Product(inner, vh)}), g.dtype())};
}

OP(Eig) {
  return {
      .doc =
          "Returns the eigenvalues e of each matrix and, with compute_v, the eigenvectors v "
          "(columns of length 1), in no particular order.",
      .inputs = {{"input", "T"}},
      .outputs = {{"e", "Tout"}, {"v", "Tout"}},
      .types = {{"T", kMatrixTypes}, {"Tout", {DType::kComplex64, DType::kComplex128}}},
      .attrs = {{"compute_v", AttrValue(true)}},
      .shape = EigShape,
      .gradient = EigGradient,
      .examples = {{.inputs = {{{{2, 2}, {1, 2, -3, 4}}}}},
                   {.inputs = {{{{1, 2, 2}, {4, 1, 2, 3}}}}, .attrs = {{"compute_v", false}}}},
  };
}
KERNEL(Eig, EigKernel, MATRIX_TYPES);

}  // namespace
}  // namespace penstock

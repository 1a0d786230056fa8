// SPDX-License-Identifier: Apache-2.0
//
// Tests decompositions and solvers. The expected numbers are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

// Compares only output 0, the eigenvalues or singular values, because the vectors are not unique.
void ExpectFirst(const OpCall& call, const Tensor& expected) {
  EXPECT_TRUE(NearTensor(call.Run()[0], expected, 1e-12)) << call.op;
}

using Complex = std::complex<double>;

// Returns a b, or a b^H if `adjoint`.
Tensor Multiply(const Tensor& a, const Tensor& b, bool adjoint = false) {
  const int64_t m = a.dim(0), k = a.dim(1), n = b.dim(adjoint ? 0 : 1);
  Tensor c(DType::kComplex128, Shape{m, n});
  for (int64_t i = 0; i < m * n; ++i) {
    Complex sum = 0;
    for (int64_t l = 0; l < k; ++l) {
      const Complex y =
          adjoint ? std::conj(b.data<Complex>()[i % n * k + l]) : b.data<Complex>()[l * n + i % n];
      sum += a.data<Complex>()[i / n * k + l] * y;
    }
    c.mutable_data<Complex>()[i] = sum;
  }
  return c;
}

Tensor Diagonal(const Tensor& d) {
  Tensor m(DType::kComplex128, Shape{d.dim(0), d.dim(0)});
  for (Complex& x : m.mutable_flat<Complex>()) x = 0;
  for (int64_t i = 0; i < d.dim(0); ++i) {
    m.mutable_data<Complex>()[i * d.dim(0) + i] = d.data<Complex>()[i];
  }
  return m;
}

// Factors are unique only up to signs. So the test checks that their product is the input, and that
// the unitary factors are unitary.
TEST(Linalg, FactorsMultiplyToTheInput) {
  const auto expect_unitary = [](const Tensor& u) {
    Tensor ones(DType::kComplex128, Shape{u.dim(1)});
    for (Complex& x : ones.mutable_flat<Complex>()) x = 1;
    Tensor adjoint(DType::kComplex128, Shape{u.dim(1), u.dim(0)});
    for (int64_t i = 0; i < u.num_elements(); ++i) {
      adjoint.mutable_data<Complex>()[i % u.dim(1) * u.dim(0) + i / u.dim(1)] =
          std::conj(u.data<Complex>()[i]);
    }
    EXPECT_TRUE(NearTensor(Multiply(adjoint, u), Diagonal(ones), 1e-12));
  };
  const Tensor hermitian = Z({2, 2}, {4, {1, -2}, {1, 2}, 5});
  const auto eig = OpCall{"SelfAdjointEigV2", {hermitian}}.Run();
  expect_unitary(eig[1]);
  EXPECT_TRUE(
      NearTensor(Multiply(Multiply(eig[1], Diagonal(eig[0])), eig[1], true), hermitian, 1e-12));
  for (const Tensor& x : {hermitian, Z({2, 3}, {{1, 2}, 3, {0, -1}, 2, {5, 1}, {1, 1}}),
                          Z({3, 2}, {{1, 2}, 3, {0, -1}, 2, {5, 1}, {1, 1}})}) {
    const auto svd = OpCall{"Svd", {x}}.Run();
    expect_unitary(svd[1]);
    expect_unitary(svd[2]);
    EXPECT_TRUE(NearTensor(Multiply(Multiply(svd[1], Diagonal(svd[0])), svd[2], true), x, 1e-12));
    const auto full = OpCall{"Svd", {x}, {{"full_matrices", true}}}.Run();
    EXPECT_EQ(full[1].shape(), Shape({x.dim(0), x.dim(0)}));
    EXPECT_EQ(full[2].shape(), Shape({x.dim(1), x.dim(1)}));
    expect_unitary(full[1]);
    expect_unitary(full[2]);
    for (const bool full_matrices : {false, true}) {
      const auto qr = OpCall{"Qr", {x}, {{"full_matrices", full_matrices}}}.Run();
      expect_unitary(qr[0]);
      EXPECT_TRUE(NearTensor(Multiply(qr[0], qr[1]), x, 1e-12));
    }
  }
}

TEST(Linalg, Cholesky) {
  ExpectOutputs({"Cholesky", {D({2, 2}, {4, 2, 2, 3})}}, {D({2, 2}, {2, 0, 1, 1.4142135623730951})},
                1e-12);
  ExpectOutputs({"Cholesky", {D({2, 2, 2}, {4, 9, 2, 3, 1, 9, 0, 2})}},
                {D({2, 2, 2}, {2, 0, 1, 1.4142135623730951, 1, 0, 0, 1.4142135623730951})}, 1e-12);
  ExpectOutputs({"Cholesky", {Z({2, 2}, {{4, 0}, {1, -2}, {1, 2}, {5, 0}})}},
                {Z({2, 2}, {{2, 0}, {0, 0}, {0.5, 1}, {1.9364916731037085, 0}})}, 1e-12);
  ExpectOutputs({"Cholesky", {F({0, 2, 2}, {})}}, {F({0, 2, 2}, {})});
  ExpectOutputs({"Cholesky", {F({0, 0}, {})}}, {F({0, 0}, {})});
  // The matrix is not positive definite.
  ExpectOutputs({"Cholesky", {D({2, 2}, {0.999, 1.999, 1.999, 3.999})}},
                {D({2, 2}, {NAN, 0, NAN, NAN})});
  OpCall{"Cholesky", {D({3, 2}, {1, 2, 3, 4, 5, 7})}}.ExpectError("Input matrix must be square");
  OpCall{"Cholesky", {D({1}, {1})}}.ExpectError("must have rank >= 2");
  ExpectOutputs({"CholeskyGrad", {D({2, 2}, {2, 7, 1, 3}), D({2, 2}, {1, 5, 3, 4})}},
                {D({2, 2}, {0.04166666666666666, 0.4166666666666667, 0.4166666666666667,
                            0.6666666666666666})},
                1e-12);
}

TEST(Linalg, Determinant) {
  ExpectOutputs({"MatrixDeterminant", {F({3, 2, 2}, {4, 2, 2, 3, 0, 1, 1, 0, 1, 2, 2, 4})}},
                {F({3}, {8, -1, -0})}, 1e-06);
  ExpectOutputs({"MatrixDeterminant", {Z({2, 2}, {{4, 0}, {1, -2}, {1, 2}, {5, 0}})}},
                {Z({}, {{15, 0}})}, 1e-12);
  ExpectOutputs({"MatrixDeterminant", {D({2, 0, 0}, {})}}, {D({2}, {1, 1})});
  OpCall{"MatrixDeterminant", {D({3, 2}, {1, 2, 3, 4, 5, 7})}}.ExpectError("must be square");
  ExpectOutputs({"LogMatrixDeterminant", {F({3, 2, 2}, {4, 2, 2, 3, 0, 1, 1, 0, 1, 2, 2, 4})}},
                {F({3}, {1, -1, -0}), F({3}, {2.0794415f, 0, -INFINITY})}, 1e-06);
  ExpectOutputs({"LogMatrixDeterminant", {Z({2, 2}, {{4, 0}, {1, -2}, {1, 2}, {5, 0}})}},
                {Z({}, {{1, 0}}), Z({}, {{2.70805020110221, 0}})}, 1e-12);
  ExpectOutputs({"LogMatrixDeterminant", {D({2, 0, 0}, {})}}, {D({2}, {1, 1}), D({2}, {0, 0})});
  OpCall{"LogMatrixDeterminant", {D({3, 2}, {1, 2, 3, 4, 5, 7})}}.ExpectError("must be square");
}

TEST(Linalg, InverseAndSolve) {
  ExpectOutputs({"MatrixInverse", {D({2, 2, 2}, {4, 1, 2, 3, 0, 1, 2, 0})}},
                {D({2, 2, 2}, {0.3, -0.1, -0.2, 0.4, 0, 0.5, 1, 0})}, 1e-12);
  ExpectOutputs(
      {"MatrixInverse", {Z({2, 2}, {{4, 0}, {2, -4}, {3, 6}, {5, 0}})}, {{"adjoint", true}}},
      {Z({2, 2}, {{-0.5, 0},
                  {0.30000000000000004, -0.6000000000000001},
                  {0.2, 0.4},
                  {-0.4000000000000001, 0}})},
      1e-12);
  OpCall{"MatrixInverse", {D({2, 2}, {1, 2, 2, 4})}}.ExpectError("Input is not invertible.");
  OpCall{"MatrixInverse", {D({2, 2}, {NAN, 1, 1, 2})}}.ExpectError("Input is not invertible.");
  OpCall{"MatrixInverse", {D({3, 2}, {1, 2, 3, 4, 5, 7})}}.ExpectError("must be square");
  ExpectOutputs({"MatrixInverse", {F({0, 0}, {})}}, {F({0, 0}, {})});
  ExpectOutputs({"MatrixSolve", {D({2, 2}, {4, 1, 2, 3}), D({2, 2}, {1, 2, 3, 4})}},
                {D({2, 2}, {0, 0.19999999999999996, 1, 1.2000000000000002})}, 1e-12);
  ExpectOutputs({"MatrixSolve", {D({2, 2}, {4, 1, 2, 3}), D({2, 1}, {1, 3})}, {{"adjoint", true}}},
                {D({2, 1}, {-0.30000000000000004, 1.1})}, 1e-12);
  OpCall{"MatrixSolve", {D({2, 2}, {1, 2, 2, 4}), D({2, 1}, {1, 3})}}.ExpectError(
      "Input matrix is not invertible.");
  OpCall{"MatrixSolve", {D({2, 2}, {4, 2, 2, 3}), D({3, 1}, {1, 3, 2})}}.ExpectError(
      "incompatible");
  OpCall{"MatrixSolve", {D({3, 2}, {1, 2, 3, 4, 5, 7}), D({3, 1}, {1, 3, 2})}}.ExpectError(
      "must be a square matrix");
  OpCall{"MatrixSolve", {D({2, 2}, {4, 2, 2, 3}), D({1, 2, 1}, {1, 3})}}.ExpectError(
      "same batch dimensions");
  ExpectOutputs({"MatrixSolve", {D({2, 2}, {4, 2, 2, 3}), D({2, 0}, {})}}, {D({2, 0}, {})});
  ExpectOutputs({"MatrixTriangularSolve",
                 {D({2, 2}, {4, 1, 2, 3}), D({2, 2}, {1, 2, 3, 4})},
                 {{"lower", true}, {"adjoint", true}}},
                {D({2, 2}, {-0.25, -0.16666666666666663, 1, 1.3333333333333333})}, 1e-12);
  ExpectOutputs({"MatrixTriangularSolve",
                 {D({2, 2}, {4, 1, 2, 3}), D({2, 2}, {1, 2, 3, 4})},
                 {{"lower", true}, {"adjoint", false}}},
                {D({2, 2}, {0.25, 0.5, 0.8333333333333333, 1})}, 1e-12);
  ExpectOutputs({"MatrixTriangularSolve",
                 {D({2, 2}, {4, 1, 2, 3}), D({2, 2}, {1, 2, 3, 4})},
                 {{"lower", false}, {"adjoint", true}}},
                {D({2, 2}, {0.25, 0.5, 0.9166666666666666, 1.1666666666666665})}, 1e-12);
  ExpectOutputs({"MatrixTriangularSolve",
                 {D({2, 2}, {4, 1, 2, 3}), D({2, 2}, {1, 2, 3, 4})},
                 {{"lower", false}, {"adjoint", false}}},
                {D({2, 2}, {0, 0.16666666666666669, 1, 1.3333333333333333})}, 1e-12);
  ExpectOutputs({"MatrixTriangularSolve", {D({2, 2}, {4, 2, 2, 3}), D({2, 2, 1}, {1, 2, 3, 4})}},
                {D({2, 2, 1}, {0.25, 0.5, 0.75, 0.8333333333333333})}, 1e-12);
  ExpectOutputs({"MatrixTriangularSolve", {D({2, 2}, {0, 1, 1, 0}), D({2, 1}, {1, 2})}},
                {D({2, 1}, {INFINITY, -INFINITY})});
  OpCall{"MatrixTriangularSolve", {D({2, 2}, {4, 2, 2, 3}), D({1, 1}, {1})}}.ExpectError(
      "incompatible");
}

TEST(Linalg, LeastSquares) {
  ExpectOutputs({"MatrixSolveLs",
                 {D({3, 2}, {1, 2, 3, 4, 5, 7}), D({3, 1}, {1, 2, 4}), D({}, {0.5})},
                 {{"fast", true}}},
                {D({2, 1}, {0.2188679245282972, 0.3924528301886826})}, 1e-09);
  ExpectOutputs({"MatrixSolveLs",
                 {D({2, 3}, {1, 3, 5, 2, 4, 7}), D({2, 1}, {1, 2}), D({}, {0.5})},
                 {{"fast", true}}},
                {D({3, 1}, {0.2339622641509449, 0.03773584905660354, 0.17358490566037732})}, 1e-09);
  ExpectOutputs({"MatrixSolveLs",
                 {D({3, 2}, {1, 2, 3, 4, 5, 7}), D({3, 1}, {1, 2, 4}), D({}, {0})},
                 {{"fast", false}}},
                {D({2, 1}, {0.07142857142856864, 0.5000000000000021})}, 1e-09);
  ExpectOutputs({"MatrixSolveLs",
                 {D({2, 3}, {1, 3, 5, 2, 4, 7}), D({2, 1}, {1, 2}), D({}, {0})},
                 {{"fast", false}}},
                {D({3, 1}, {0.9285714285714288, -0.21428571428571408, 0.14285714285714268})},
                1e-09);
  ExpectOutputs({"MatrixSolveLs",
                 {D({2, 2}, {1, 2, 2, 4}), D({2, 1}, {1, 2}), D({}, {0})},
                 {{"fast", false}}},
                {D({2, 1}, {0.20000000000000004, 0.40000000000000013})}, 1e-09);
  ExpectOutputs({"MatrixSolveLs",
                 {Z({3, 2}, {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {7, 7}}),
                  Z({3, 1}, {{1, -2}, {2, -4}, {4, -8}}), D({}, {0})},
                 {{"fast", false}}},
                {Z({2, 1}, {{-0.035714285714285234, -0.10714285714285673},
                            {-0.2500000000000004, -0.7500000000000002}})},
                1e-09);
  OpCall{"MatrixSolveLs", {D({2, 2}, {1, 2, 2, 4}), D({2, 1}, {1, 2}), D({}, {0})}}.ExpectError(
      "rank deficient");
  OpCall{"MatrixSolveLs", {D({2, 2}, {4, 2, 2, 3}), D({2, 1}, {1, 2}), D({}, {-1})}}.ExpectError(
      "l2_regularizer must be >= 0");
  OpCall{"MatrixSolveLs", {D({2, 2}, {4, 2, 2, 3}), D({2, 1}, {1, 2}), D({1}, {1})}}.ExpectError(
      "l2_regularizer must be scalar");
  ExpectOutputs({"MatrixSolveLs", {D({0, 2}, {}), D({0, 3}, {}), D({}, {0})}},
                {D({2, 3}, {0, 0, 0, 0, 0, 0})});
}

TEST(Linalg, SelfAdjointEig) {
  ExpectFirst({"SelfAdjointEigV2", {D({2, 2}, {4, 2, 2, 3})}, {{"compute_v", false}}},
              D({2}, {1.43844718719117, 5.561552812808831}));
  ExpectFirst(
      {"SelfAdjointEigV2", {D({2, 2, 2}, {4, 9, 2, 3, 1, 9, 0, 2})}, {{"compute_v", false}}},
      D({2, 2}, {1.43844718719117, 5.561552812808831, 1, 2}));
  ExpectFirst(
      {"SelfAdjointEigV2", {Z({2, 2}, {{4, 0}, {1, -2}, {1, 2}, {5, 0}})}, {{"compute_v", false}}},
      Z({2}, {{2.2087121525220805, 0}, {6.79128784747792, 0}}));
  OpCall{"SelfAdjointEigV2", {D({2, 2}, {NAN, 1, 1, 2})}}.ExpectError("not successful");
  OpCall{"SelfAdjointEigV2", {D({3, 2}, {1, 2, 3, 4, 5, 7})}}.ExpectError("must be square");
}

TEST(Linalg, SvdValues) {
  ExpectFirst({"Svd", {D({2, 2}, {4, 2, 2, 3})}, {{"compute_uv", false}}},
              D({2}, {5.561552812808831, 1.43844718719117}));
  ExpectFirst({"Svd", {D({3, 2}, {1, 2, 3, 4, 5, 7})}, {{"compute_uv", false}}},
              D({2}, {10.191428257097225, 0.36713768594389984}));
  ExpectFirst({"Svd", {D({2, 3}, {1, 3, 5, 2, 4, 7})}, {{"compute_uv", false}}},
              D({2}, {10.191428257097227, 0.3671376859438999}));
  ExpectFirst({"Svd", {Z({2, 2}, {{4, 0}, {1, -2}, {1, 2}, {5, 0}})}, {{"compute_uv", false}}},
              Z({2}, {{6.791287847477923, 0}, {2.20871215252208, 0}}));
  ExpectOutputs(
      {"Svd", {D({2, 2}, {NAN, 1, 1, 2})}},
      {D({2}, {NAN, NAN}), D({2, 2}, {NAN, NAN, NAN, NAN}), D({2, 2}, {NAN, NAN, NAN, NAN})});
  ExpectOutputs({"Svd", {D({3, 0}, {})}}, {D({0}, {}), D({3, 0}, {}), D({0, 0}, {})});
  ExpectOutputs(
      {"Svd", {D({2, 3, 0}, {})}, {{"full_matrices", true}}},
      {D({2, 0}, {}), D({2, 3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1}),
       D({2, 0, 0}, {})});
}

TEST(Linalg, Qr) {
  ExpectOutputs({"Qr", {D({2, 2}, {4, 2, 2, 3})}},
                {D({2, 2}, {-0.8944271909999157, -0.4472135954999579, -0.4472135954999579,
                            0.8944271909999159}),
                 D({2, 2}, {-4.47213595499958, -3.1304951684997047, 0, 1.788854381999832})},
                1e-12);
  ExpectOutputs({"Qr", {D({3, 2}, {1, 2, 3, 4, 5, 7})}},
                {D({3, 2}, {-0.16903085094570325, 0.948683298050514, -0.5070925528371099,
                            -0.3162277660168368, -0.8451542547285166, -8.881784197001252e-16}),
                 D({2, 2}, {-5.916079783099616, -8.282511696339462, 0, 0.632455532033676})},
                1e-12);
  ExpectOutputs({"Qr", {D({2, 3}, {1, 3, 5, 2, 4, 7})}},
                {D({2, 2}, {-0.44721359549995787, -0.8944271909999157, -0.8944271909999157,
                            0.4472135954999581}),
                 D({2, 3}, {-2.23606797749979, -4.919349550499537, -8.497058314499197, 0,
                            -0.8944271909999157, -1.3416407864998714})},
                1e-12);
  ExpectOutputs({"Qr", {D({3, 2}, {1, 2, 3, 4, 5, 7})}, {{"full_matrices", true}}},
                {D({3, 3}, {-0.16903085094570325, 0.948683298050514, -0.267261241912423,
                            -0.5070925528371099, -0.3162277660168368, -0.8017837257372736,
                            -0.8451542547285166, -8.881784197001252e-16, 0.5345224838248488}),
                 D({3, 2}, {-5.916079783099616, -8.282511696339462, 0, 0.632455532033676, 0, 0})},
                1e-12);
  ExpectOutputs({"Qr", {D({3, 0}, {})}}, {D({3, 0}, {}), D({0, 0}, {})});
}

}  // namespace
}  // namespace penstock

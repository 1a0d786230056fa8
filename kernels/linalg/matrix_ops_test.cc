// SPDX-License-Identifier: Apache-2.0
//
// Tests Eig, Lu, functions of matrices, and banded systems. The expected numbers are those of
// TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

using Complex = std::complex<double>;

const Tensor kReal = D({3, 3}, {4, 1, 0.5, 2, 3, 1, -1, 0.25, 2});
const Tensor kComplexMatrix =
    Z({3, 3}, {4, {1, 1}, 0.5, {2, 0.5}, 3, 1, -1, {0.25, -1}, {2, 0.25}});
const Tensor kRight = D({3, 2}, {1, 4, 2, 5, 3, 6});

TEST(MatrixFunctions, OfRealAndComplexMatrices) {
  ExpectOutputs({"MatrixSquareRoot", {kReal}},
                {D({3, 3}, {1.9706548697458, 0.270482831670266, 0.123636719984295,
                            0.574121937200071, 1.67696264637386, 0.300323478143852,
                            -0.313585987687667, 0.108237143395502, 1.41642669686145})},
                1e-13);
  ExpectOutputs({"MatrixSquareRoot", {kComplexMatrix}},
                {Z({3, 3}, {{1.98331968047039, -0.0546563667205687},
                            {0.263809314079819, 0.28904857273611},
                            {0.12259769737814, -0.0267102302178384},
                            {0.566610097241406, 0.144704903196162},
                            {1.69260687791994, -0.0332137887511965},
                            {0.297280302419424, -0.00856040672511987},
                            {-0.322817099263602, 0.050794064584801},
                            {0.104570521133398, -0.298107206175265},
                            {1.4222212159373, 0.114140756923467}})},
                1e-13);
  ExpectOutputs({"MatrixLogarithm", {kComplexMatrix}},
                {Z({3, 3}, {{1.3532522240261, -0.125157026216149},
                            {0.276663912937118, 0.342716163371048},
                            {0.117614665397892, -0.0631888317742328},
                            {0.651398044094242, 0.175975005235738},
                            {1.0087706963056, -0.076315160493192},
                            {0.36014997592713, -0.0177421584884158},
                            {-0.422135920135368, 0.119160131309816},
                            {0.16574863016316, -0.360976749429908},
                            {0.711931535364798, 0.187022325444395}})},
                1e-13);
  ExpectOutputs({"MatrixExponential", {kReal}},
                {D({3, 3}, {87.4980561852437, 46.0015753927048, 28.5819885295519, 76.0568626905537,
                            52.658882458938, 31.6499161073345, -25.2714008693922, -8.03380906802227,
                            1.87342063777647})},
                1e-13);
  const Tensor exponential = Z({3, 3}, {{71.5069287716626, 47.3142812342425},
                                        {34.2901522231762, 44.8638453950945},
                                        {23.7536945119299, 19.5740402656279},
                                        {65.2976209933784, 37.0814109849889},
                                        {41.985492363031, 27.6029532050107},
                                        {27.7534577337583, 13.0586474066447},
                                        {-11.6430455430279, -30.1606106844356},
                                        {2.06484009966839, -28.9825308055072},
                                        {5.8958143832547, -11.0015520629207}});
  ExpectOutputs({"MatrixExponential", {kComplexMatrix}}, {exponential}, 1e-13);
  ExpectOutputs({"MatrixLogarithm", {exponential}}, {kComplexMatrix}, 1e-11);
}

TEST(MatrixFunctions, NaNWhereThereIsNone) {
  const double nan = std::nan("");
  ExpectOutputs({"MatrixSquareRoot", {D({2, 2}, {-5, 2, 3, 4})}},
                {D({2, 2}, {nan, nan, nan, nan})});
  ExpectOutputs({"MatrixSquareRoot", {D({2, 2}, {0, 1, 0, 0})}}, {D({2, 2}, {nan, nan, nan, nan})});
  const Complex none(nan, nan);
  ExpectOutputs({"MatrixLogarithm", {Z({2, 2}, {1, 2, 0, 0})}},
                {Z({2, 2}, {none, none, none, none})});
  ExpectOutputs({"MatrixSquareRoot", {D({2, 2}, {4, 0, 0, 0})}}, {D({2, 2}, {2, 0, 0, 0})});
  OpCall{"MatrixExponential", {D({1, 2}, {1, 2})}}.ExpectError("must be square");
}

TEST(Eig, ValuesAndVectors) {
  ExpectOutputs(
      {"Eig", {D({2, 2}, {3, 1, 0, 2})}, {{"compute_v", false}, {"Tout", DType::kComplex128}}},
      {Z({2}, {3, 2}), Z({0}, {})}, 1e-14);
  for (const Tensor& a : {D({2, 2}, {1, 2, -3, 4}), Z({2, 2}, {{1, 1}, 2, -3, 4})}) {
    const auto outputs = OpCall{"Eig", {a}, {{"Tout", DType::kComplex128}}}.Run();
    const auto e = outputs[0].flat<Complex>(), v = outputs[1].flat<Complex>();
    const bool real = a.dtype() == DType::kDouble;
    const auto at = [&](int i) {
      return real ? Complex(a.data<double>()[i]) : a.data<Complex>()[i];
    };
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 2; ++i) {
        EXPECT_LT(std::abs(at(2 * i) * v[j] + at(2 * i + 1) * v[2 + j] - e[j] * v[2 * i + j]),
                  1e-14);
      }
      EXPECT_NEAR(std::norm(v[j]) + std::norm(v[2 + j]), 1, 1e-14);
    }
    if (real) {
      EXPECT_LT(std::abs(e[0] - Complex(2.5, 1.93649167310371)), 1e-14);
    }
  }
  OpCall{"Eig", {D({1, 1}, {std::nan("")})}, {{"Tout", DType::kComplex128}}}.ExpectError(
      "Eigen decomposition was not successful");
}

TEST(Lu, ExchangesRows) {
  ExpectOutputs({"Lu", {D({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 10})}},
                {D({3, 3}, {7, 8, 10, 0.14285714285714285, 0.8571428571428572, 1.5714285714285716,
                            0.5714285714285714, 0.5, -0.5}),
                 I({3}, {2, 0, 1})},
                1e-14);
  ExpectOutputs({"Lu", {Z({2, 2}, {{1, 1}, 2, 3, {4, -2}})}, {{"output_idx_type", DType::kInt64}}},
                {Z({2, 2}, {3, {4, -2}, {1. / 3, 1. / 3}, {0, -2. / 3}}), L({2}, {1, 0})}, 1e-14);
  OpCall{"Lu", {D({2, 2}, {1, 2, 2, 4})}}.ExpectError("Input is not invertible.");
}

TEST(Tridiagonal, SolvesAndMultiplies) {
  const Tensor diagonals = D({3, 3}, {1, 2, 9, 0.5, 5, 6, 9, 1, 2});
  const Tensor solution = D({3, 2}, {2.85714285714286, 12.2857142857143, -0.428571428571429,
                                     -2.14285714285714, 0.642857142857143, 1.71428571428571});
  for (const bool pivoting : {true, false}) {
    ExpectOutputs({"TridiagonalSolve", {diagonals, kRight}, {{"partial_pivoting", pivoting}}},
                  {solution}, 1e-13);
  }
  const auto row = [&](int i) { return diagonals.Slice(i, i + 1); };
  ExpectOutputs({"TridiagonalMatMul", {row(0), row(1), row(2), kRight}},
                {D({3, 2}, {2.5, 7, 17, 41, 22, 46})}, 1e-14);
  ExpectOutputs({"TridiagonalMatMul", {row(0), row(1), row(2), solution}}, {kRight}, 1e-13);
  ExpectOutputs(
      {"TridiagonalSolve",
       {Z({3, 3}, {{1, 9}, {2, 1}, {9, 2}, {0.5, 0.5}, {5, 5}, {6, 6}, {9, 1}, {1, 2}, {2, 9}}),
        Z({3, 1}, {1, 2, 3})}},
      {Z({3, 1}, {{0.4101831431585, -0.312263879566593},
                  {0.00241633905455936, -0.0707066832869882},
                  {0.206539457282577, -0.18659507143542}})},
      1e-13);
}

TEST(Tridiagonal, SingularMatrices) {
  const Tensor singular = D({3, 2}, {1, 0, 0, 0, 0, 0}), right = D({2, 1}, {1, 2});
  const double nan = std::nan("");
  ExpectOutputs({"TridiagonalSolve", {singular, right}}, {D({2, 1}, {nan, nan})});
  const Attrs perturb = {{"perturb_singular", true}};
  const Tensor x = OpCall{"TridiagonalSolve", {singular, right}, perturb}.Run1();
  EXPECT_TRUE(std::isfinite(x.data<double>()[0]) && std::isfinite(x.data<double>()[1]));
  OpCall{"TridiagonalSolve",
         {singular, right},
         {{"perturb_singular", true}, {"partial_pivoting", false}}}
      .ExpectError("perturb_singular needs partial_pivoting");
  OpCall{"TridiagonalSolve", {kReal, right}}.ExpectError(
      "diagonals must have 3 rows and a column for each of the 2 rows of rhs");
}

TEST(BandedTriangularSolve, AllFourForms) {
  const Tensor bands = D({2, 3}, {1, 2, 3, 7, 4, 5});
  const struct {
    bool lower, adjoint;
    Tensor x;
  } cases[] = {
      {true, true, D({3, 2}, {7, 14, -1.5, -2.5, 1, 2})},
      {true, false, D({3, 2}, {1, 4, -1, -5.5, 2.66666666666667, 11.1666666666667})},
      {false, true,
       D({3, 2}, {0.142857142857143, 0.571428571428571, 0.464285714285714, 1.10714285714286,
                  0.414285714285714, 0.757142857142857})},
      {false, false, D({3, 2}, {0.114285714285714, 0.478571428571429, 0.2, 0.65, 0.6, 1.2})},
  };
  for (const auto& c : cases) {
    ExpectOutputs(
        {"BandedTriangularSolve", {bands, kRight}, {{"lower", c.lower}, {"adjoint", c.adjoint}}},
        {c.x}, 1e-14);
  }
  ExpectOutputs(
      {"BandedTriangularSolve",
       {Z({2, 3}, {{1, 7}, {2, 4}, {3, 5}, {7, 1}, {4, 2}, {5, 3}}), Z({3, 1}, {1, 2, 3})},
       {{"adjoint", true}}},
      {Z({3, 1}, {{-0.199058823529412, 0.124235294117647},
                  {0.217647058823529, -0.270588235294118},
                  {0.264705882352941, 0.441176470588235}})},
      1e-14);
  OpCall{"BandedTriangularSolve", {D({1, 3}, {1, 0, 1}), kRight}}.ExpectError(
      "Input matrix is not invertible.");
  OpCall{"BandedTriangularSolve", {D({0, 3}, {}), kRight}}.ExpectError(
      "matrix must have a row for each of its diagonals, at least one");
}

}  // namespace
}  // namespace penstock

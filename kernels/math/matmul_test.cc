// SPDX-License-Identifier: Apache-2.0
//
// Compares matrix products of many shapes with three nested loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>

#include "core/op/testing/op_runner.h"
#include "kernels/math/testing/test_tensors.h"

namespace penstock {
namespace {

// Returns small whole numbers: products and sums of a few hundred are exact in every type.
template <class T>
Tensor Whole(const Shape& shape, int step) {
  Tensor t(kDTypeOf<T>, shape);
  int i = 0;
  for (T& v : t.mutable_flat<T>()) v = T(static_cast<float>(i++ * step % 5 - 2));
  return t;
}

template <class T>
T Conjugate(T x) {
  if constexpr (std::is_same_v<T, std::complex<double>> || std::is_same_v<T, std::complex<float>>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// Returns op(a) op(b), computed element by element; op is the adjoint if `adjoint`, else the
// transpose.
template <class T>
Tensor ByTheBook(const Tensor& a, const Tensor& b, bool ta, bool tb, bool adjoint) {
  const int64_t m = a.dim(ta), k = a.dim(!ta), n = b.dim(!tb);
  Tensor c(kDTypeOf<T>, Shape{m, n});
  const auto at = [&](const Tensor& x, int64_t i, int64_t j, bool turned) {
    const T value = x.flat<T>()[turned ? j * x.dim(1) + i : i * x.dim(1) + j];
    return turned && adjoint ? Conjugate(value) : value;
  };
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum(0.0f);
      for (int64_t l = 0; l < k; ++l) sum = T(sum + T(at(a, i, l, ta) * at(b, l, j, tb)));
      c.mutable_flat<T>()[i * n + j] = sum;
    }
  }
  return c;
}

const int64_t kSizes[][3] = {{1, 1, 1},    {2, 3, 4},   {1, 70, 33},  {33, 70, 1}, {1, 300, 600},
                             {600, 40, 1}, {17, 9, 35}, {70, 30, 80}, {80, 20, 9}, {9, 20, 130},
                             {3, 0, 2},    {0, 3, 2},   {2, 3, 0}};

template <class T>
void CheckMatMul() {
  for (const auto& [m, k, n] : kSizes) {
    for (int turned = 0; turned < 4; ++turned) {
      const bool ta = turned & 1, tb = turned & 2;
      const Tensor a = Whole<T>(ta ? Shape{k, m} : Shape{m, k}, 3);
      const Tensor b = Whole<T>(tb ? Shape{n, k} : Shape{k, n}, 7);
      const auto c =
          OpRunner("MatMul").In(a).In(b).Attr("transpose_a", ta).Attr("transpose_b", tb).Run1();
      ASSERT_TRUE(c.ok()) << c.status();
      const Tensor exact = ByTheBook<T>(a, b, ta, tb, false);
      // -0 counts as equal to 0.
      for (int64_t i = 0; i < exact.num_elements(); ++i) {
        ASSERT_EQ(c->flat<T>()[i], exact.flat<T>()[i])
            << Name(kDTypeOf<T>) << " " << m << "x" << k << "x" << n << " " << turned;
      }
      ASSERT_EQ(c->shape(), exact.shape());
    }
  }
}

TEST(MatMul, Float) { CheckMatMul<float>(); }
TEST(MatMul, Double) { CheckMatMul<double>(); }
TEST(MatMul, Half) { CheckMatMul<half>(); }
TEST(MatMul, Bfloat16) { CheckMatMul<bfloat16>(); }
TEST(MatMul, Int32) { CheckMatMul<int32_t>(); }
TEST(MatMul, Int64) { CheckMatMul<int64_t>(); }
TEST(MatMul, Complex64) { CheckMatMul<std::complex<float>>(); }
TEST(MatMul, Complex128) { CheckMatMul<std::complex<double>>(); }

// Large enough to be split over threads.
TEST(MatMul, Large) {
  const Tensor a = Whole<float>({300, 200}, 3), b = Whole<float>({200, 500}, 7);
  EXPECT_TRUE(
      Same(*OpRunner("MatMul").In(a).In(b).Run1(), ByTheBook<float>(a, b, false, false, false)));
}

TEST(MatMul, WhatWasInMemoryDoesNotMatter) {
  // If the inner dimension is 0, the result is zero; the kernel must not read the old contents of
  // the output buffer.
  const Tensor a(DType::kFloat, Shape{2, 0}), b(DType::kFloat, Shape{0, 2});
  EXPECT_TRUE(
      Same(*OpRunner("MatMul").In(a).In(b).Run1(), Tensor::Of<float>({2, 2}, {0, 0, 0, 0})));
}

TEST(MatMul, Mistakes) {
  const auto error = [](const Shape& a, const Shape& b) {
    const auto c =
        OpRunner("MatMul").In(Tensor(DType::kFloat, a)).In(Tensor(DType::kFloat, b)).Run1();
    EXPECT_EQ(c.status().code(), StatusCode::kInvalidArgument);
    return std::string(c.status().message());
  };
  EXPECT_THAT(error({2, 3}, {4, 5}), testing::HasSubstr("3 and 4"));
  EXPECT_THAT(error({2}, {2, 5}), testing::HasSubstr("rank 2"));
}

template <class T>
void CheckBatch(const char* op, const Shape& a_batch, const Shape& b_batch,
                std::vector<std::pair<int, int>> pairs, const Shape& batch) {
  for (int turned = 0; turned < 4; ++turned) {
    const bool ta = turned & 1, tb = turned & 2;
    Shape a_shape = a_batch, b_shape = b_batch;
    for (int64_t d : {ta ? 3 : 2, ta ? 2 : 3}) a_shape.AddDim(d);
    for (int64_t d : {tb ? 4 : 3, tb ? 3 : 4}) b_shape.AddDim(d);
    Tensor a = Whole<T>(a_shape, 3), b = Whole<T>(b_shape, 7);
    if constexpr (std::is_same_v<T, std::complex<double>>) {
      for (T& v : a.mutable_flat<T>()) v += T(0, v.real() + 1);
      for (T& v : b.mutable_flat<T>()) v -= T(0, v.real() - 1);
    }
    const auto c = OpRunner(op).In(a).In(b).Attr("adj_x", ta).Attr("adj_y", tb).Run1();
    ASSERT_TRUE(c.ok()) << c.status();
    Shape shape = batch;
    shape.AddDim(2);
    shape.AddDim(4);
    ASSERT_EQ(c->shape(), shape);
    const auto matrix = [](const Tensor& all, int i) {
      const int r = all.rank();
      const Shape one{all.dim(r - 2), all.dim(r - 1)};
      const Tensor flat =
          all.Reshaped({all.num_elements() / one.num_elements(), one.dim(0), one.dim(1)});
      return flat.Slice(i, i + 1).Reshaped(one);
    };
    for (size_t i = 0; i < pairs.size(); ++i) {
      const Tensor exact =
          ByTheBook<T>(matrix(a, pairs[i].first), matrix(b, pairs[i].second), ta, tb, true);
      for (int64_t j = 0; j < 8; ++j) {
        ASSERT_EQ(matrix(*c, static_cast<int>(i)).template flat<T>()[j], exact.flat<T>()[j]);
      }
    }
  }
}

TEST(BatchMatMul, OfEqualBatches) {
  for (const char* op : {"BatchMatMul", "BatchMatMulV2"}) {
    CheckBatch<float>(op, {3}, {3}, {{0, 0}, {1, 1}, {2, 2}}, {3});
    CheckBatch<half>(op, {2, 1}, {2, 1}, {{0, 0}, {1, 1}}, {2, 1});
    CheckBatch<int16_t>(op, {2}, {2}, {{0, 0}, {1, 1}}, {2});
    CheckBatch<std::complex<double>>(op, {2}, {2}, {{0, 0}, {1, 1}}, {2});
    CheckBatch<double>(op, {}, {}, {{0, 0}}, {});
  }
}

TEST(BatchMatMul, V2Broadcasts) {
  CheckBatch<float>("BatchMatMulV2", {2, 1}, {3}, {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}},
                    {2, 3});
  CheckBatch<float>("BatchMatMulV2", {}, {2}, {{0, 0}, {0, 1}}, {2});
  const Tensor a(DType::kFloat, Shape{2, 3, 4}), b(DType::kFloat, Shape{3, 4, 5});
  EXPECT_FALSE(OpRunner("BatchMatMulV2").In(a).In(b).Run1().ok());
  EXPECT_FALSE(OpRunner("BatchMatMul").In(a).In(a).Run1().ok());
}

}  // namespace
}  // namespace penstock

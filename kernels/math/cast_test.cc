// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "core/op/testing/op_runner.h"
#include "kernels/math/testing/test_tensors.h"

namespace penstock {
namespace {

Tensor CastOf(const Tensor& x, DType to, bool truncate = false) {
  const auto y = OpRunner("Cast").In(x).Attr("DstT", to).Attr("Truncate", truncate).Run1();
  CHECK_OK(y.status());
  return *y;
}

template <class T>
Tensor Of(std::initializer_list<double> values) {
  Tensor t(kDTypeOf<T>, Shape{static_cast<int64_t>(values.size())});
  int64_t i = 0;
  for (double v : values) t.mutable_flat<T>()[i++] = T(static_cast<float>(v));
  return t;
}

template <class... Ts>
struct Types {};

// Checks that 0, 1, 2 and 7, which are exact in every type but bool, are cast from From to To.
template <class From, class To>
void CheckPair() {
  EXPECT_TRUE(Same(CastOf(Of<From>({0, 1, 2, 7}), kDTypeOf<To>), Of<To>({0, 1, 2, 7})))
      << Name(kDTypeOf<From>) << " to " << Name(kDTypeOf<To>);
}
template <class From, class... Tos>
void CheckFrom(Types<Tos...>) {
  (CheckPair<From, Tos>(), ...);
  EXPECT_TRUE(Same(CastOf(Of<From>({0, 1, 2, 7}), DType::kBool),
                   Tensor::Vector<bool>({false, true, true, true})));
}
template <class... Froms, class To>
void CheckAll(Types<Froms...>, To to) {
  (CheckFrom<Froms>(to), ...);
}

using Numbers = Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                      uint16_t, uint32_t, uint64_t, std::complex<float>, std::complex<double>>;

TEST(Cast, EveryPairOfTypes) { CheckAll(Numbers(), Numbers()); }

TEST(Cast, FromBool) {
  const Tensor x = Tensor::Vector<bool>({false, true});
  EXPECT_TRUE(Same(CastOf(x, DType::kFloat), Of<float>({0, 1})));
  EXPECT_TRUE(Same(CastOf(x, DType::kHalf), Of<half>({0, 1})));
  EXPECT_TRUE(Same(CastOf(x, DType::kInt64), Of<int64_t>({0, 1})));
}

TEST(Cast, RoundsTowardsZero) {
  const Tensor x = Of<float>({1.75, -1.75, 0.5, -0.5});
  EXPECT_TRUE(Same(CastOf(x, DType::kInt32), Tensor::Vector<int32_t>({1, -1, 0, 0})));
  EXPECT_TRUE(Same(CastOf(x, DType::kInt8), Tensor::Vector<int8_t>({1, -1, 0, 0})));
  EXPECT_TRUE(Same(CastOf(x, DType::kInt64), Tensor::Vector<int64_t>({1, -1, 0, 0})));
}

// The result must be the same for every element, in the vectorised loop and in its remainder.
TEST(Cast, WhatDoesNotFitWrapsAlike) {
  for (const auto& [value, as_uint8, as_int16] :
       {std::tuple<float, uint8_t, int16_t>{-1, 255, -1}, {300, 44, 300}, {65540, 4, 4}}) {
    Tensor x(DType::kFloat, Shape{37});
    for (float& v : x.mutable_flat<float>()) v = value;
    const Tensor bytes = CastOf(x, DType::kUint8), shorts = CastOf(x, DType::kInt16);
    for (uint8_t v : bytes.flat<uint8_t>()) ASSERT_EQ(v, as_uint8);
    for (int16_t v : shorts.flat<int16_t>()) ASSERT_EQ(v, as_int16);
  }
  const Tensor wide = Tensor::Vector<int64_t>({-1, int64_t{1} << 33 | 5});
  EXPECT_TRUE(Same(CastOf(wide, DType::kUint32), Tensor::Vector<uint32_t>({~0u, 5})));
  for (double v : {4e9, -1.0}) {
    Tensor x(DType::kDouble, Shape{37});
    for (double& d : x.mutable_flat<double>()) d = v;
    const Tensor cast = CastOf(x, DType::kUint32);
    for (uint32_t u : cast.flat<uint32_t>()) {
      ASSERT_EQ(u, static_cast<uint32_t>(static_cast<int64_t>(v)));
    }
  }
}

TEST(Cast, ComplexNumbers) {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  const Tensor x = Tensor::Vector<C64>({{1, 2}, {-3, 4}});
  EXPECT_TRUE(Same(CastOf(x, DType::kComplex128), Tensor::Vector<C128>({{1, 2}, {-3, 4}})));
  EXPECT_TRUE(Same(CastOf(x, DType::kFloat), Tensor::Vector<float>({1, -3})));
  EXPECT_TRUE(
      Same(CastOf(Tensor::Vector<float>({5}), DType::kComplex64), Tensor::Vector<C64>({{5, 0}})));
}

TEST(Cast, Truncates) {
  // 1 + 2^-8 + 2^-9 is nearer to the next greater bfloat16.
  const Tensor x = Tensor::Vector<float>({1 + 0x1p-8f + 0x1p-9f, -1 - 0x1p-8f - 0x1p-9f, INFINITY});
  EXPECT_TRUE(Same(CastOf(x, DType::kBfloat16), Of<bfloat16>({1.0078125, -1.0078125, INFINITY})));
  EXPECT_TRUE(Same(CastOf(x, DType::kBfloat16, true), Of<bfloat16>({1, -1, INFINITY})));
  const Tensor d = Tensor::Vector<double>({1 + 0x1p-24 + 0x1p-25, NAN});
  EXPECT_EQ(CastOf(d, DType::kFloat).flat<float>()[0], 1 + 0x1p-23f);
  EXPECT_EQ(CastOf(d, DType::kFloat, true).flat<float>()[0], 1);
  EXPECT_TRUE(std::isnan(CastOf(d, DType::kFloat, true).flat<float>()[1]));
}

TEST(Cast, Quantized) {
  const Tensor x = Tensor::Vector<float>({3, 200});
  const Tensor q = CastOf(x, DType::kQuint8);
  EXPECT_EQ(q.flat<quint8>()[1].value, 200);
  EXPECT_TRUE(Same(CastOf(q, DType::kInt32), Tensor::Vector<int32_t>({3, 200})));
}

TEST(Cast, LargeAndEmpty) {
  Tensor x(DType::kFloat, Shape{100, 100});
  for (int i = 0; i < 10000; ++i) x.mutable_flat<float>()[i] = static_cast<float>(i % 1000);
  const Tensor y = CastOf(x, DType::kHalf);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(static_cast<float>(y.flat<half>()[i]), i % 1000);
  EXPECT_EQ(CastOf(Tensor(DType::kFloat, Shape{0, 3}), DType::kInt32).shape(), (Shape{0, 3}));
}

TEST(Cast, StringsAreNoNumbers) {
  EXPECT_FALSE(OpRunner("Cast")
                   .In(Tensor::Scalar<std::string>("1"))
                   .Attr("DstT", DType::kFloat)
                   .Run1()
                   .ok());
}

}  // namespace
}  // namespace penstock

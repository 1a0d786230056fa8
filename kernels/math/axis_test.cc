// SPDX-License-Identifier: Apache-2.0
//
// Tests ops along one axis: ArgMax, ArgMin, Cumsum, Cumprod; and UnsortedSegmentSum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/op/testing/op_runner.h"
#include "kernels/math/testing/test_tensors.h"

namespace penstock {
namespace {

template <class T>
Tensor Scrambled(const Shape& shape) {
  Tensor x(kDTypeOf<T>, shape);
  int i = 0;
  for (T& v : x.mutable_flat<T>()) v = T(static_cast<float>(i++ * 37 % 101 - 50));
  return x;
}

// Visits each line along `axis` as (first element, step, number of elements, index of the line).
template <class F>
void ForEachLine(const Shape& shape, int axis, F visit) {
  int64_t inner = 1, outer = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape.dim(d);
  for (int d = 0; d < axis; ++d) outer *= shape.dim(d);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      visit(o * shape.dim(axis) * inner + i, inner, shape.dim(axis), o * inner + i);
    }
  }
}

const Shape kShapes[] = {{1}, {77}, {3, 40}, {40, 3}, {4, 5, 6}, {2, 300, 300}, {5000}};

template <class T>
void CheckArg() {
  for (const Shape& shape : kShapes) {
    const Tensor x = Scrambled<T>(shape);
    for (int32_t axis = -shape.rank(); axis < shape.rank(); ++axis) {
      const Tensor at = Tensor::Scalar(axis);
      const auto max = OpRunner("ArgMax").In(x).In(at).Run1();
      const auto min = OpRunner("ArgMin").In(x).In(at).Attr("output_type", DType::kInt32).Run1();
      ASSERT_TRUE(max.ok() && min.ok()) << max.status() << min.status();
      const int positive = axis < 0 ? axis + shape.rank() : axis;
      ForEachLine(shape, positive, [&](int64_t first, int64_t step, int64_t n, int64_t line) {
        int64_t best = 0, worst = 0;
        for (int64_t k = 1; k < n; ++k) {
          if (x.flat<T>()[first + k * step] > x.flat<T>()[first + best * step]) best = k;
          if (x.flat<T>()[first + k * step] < x.flat<T>()[first + worst * step]) worst = k;
        }
        ASSERT_EQ(max->template flat<int64_t>()[line], best) << shape.ToString() << axis;
        ASSERT_EQ(min->template flat<int32_t>()[line], worst) << shape.ToString() << axis;
      });
    }
  }
}

TEST(ArgExtremum, Float) { CheckArg<float>(); }
TEST(ArgExtremum, Half) { CheckArg<half>(); }
TEST(ArgExtremum, Int8) { CheckArg<int8_t>(); }
TEST(ArgExtremum, Int64) { CheckArg<int64_t>(); }

TEST(ArgExtremum, CornerCases) {
  const auto arg = [](const Tensor& x) {
    const auto y = OpRunner("ArgMax").In(x).In(Tensor::Scalar<int32_t>(0)).Run1();
    CHECK_OK(y.status());
    return y->scalar<int64_t>();
  };
  EXPECT_EQ(arg(Tensor::Vector<float>({1, 3, 3, 2})), 1);
  EXPECT_EQ(arg(Tensor::Vector<float>({NAN, 1, NAN, 2})), 3);
  EXPECT_EQ(arg(Tensor::Vector<float>({-INFINITY, -INFINITY})), 0);
  EXPECT_EQ(arg(Tensor::Vector<bool>({false, true, true})), 1);
  std::vector<float> tie(100, 0);
  tie[40] = tie[72] = 5;  // in different lanes of the inner loop
  tie[41] = 5;
  EXPECT_EQ(arg(Tensor::Vector<float>(tie)), 40);
  EXPECT_EQ(OpRunner("ArgMax")
                .In(Tensor::Vector<float>(tie))
                .In(Tensor::Scalar<int16_t>(-1))
                .Run1()
                ->scalar<int64_t>(),
            40);
  EXPECT_EQ(OpRunner("ArgMax")
                .In(Tensor(DType::kFloat, Shape{0, 3}))
                .In(Tensor::Scalar<int32_t>(0))
                .Run1()
                .status()
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(OpRunner("ArgMax")
                .In(Tensor(DType::kFloat, Shape{0, 3}))
                .In(Tensor::Scalar<int32_t>(1))
                .Run1()
                ->shape(),
            (Shape{0}));
  EXPECT_FALSE(
      OpRunner("ArgMax").In(Tensor::Vector<float>({1})).In(Tensor::Scalar<int32_t>(1)).Run1().ok());
}

TEST(Scan, AgainstLoops) {
  for (const Shape& shape : kShapes) {
    const Tensor x = Scrambled<int64_t>(shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      for (int flags = 0; flags < 4; ++flags) {
        const bool exclusive = flags & 1, reverse = flags & 2;
        const auto y = OpRunner("Cumsum")
                           .In(x)
                           .In(Tensor::Scalar<int32_t>(axis))
                           .Attr("exclusive", exclusive)
                           .Attr("reverse", reverse)
                           .Run1();
        ASSERT_TRUE(y.ok()) << y.status();
        ForEachLine(shape, axis, [&](int64_t first, int64_t step, int64_t n, int64_t) {
          int64_t sum = 0;
          for (int64_t k = 0; k < n; ++k) {
            const int64_t at = first + (reverse ? n - 1 - k : k) * step;
            const int64_t before = sum;
            sum += x.flat<int64_t>()[at];
            ASSERT_EQ(y->flat<int64_t>()[at], exclusive ? before : sum);
          }
        });
      }
    }
  }
}

TEST(Scan, Products) {
  const auto cumprod = [](const Tensor& x, bool exclusive) {
    return *OpRunner("Cumprod")
                .In(x)
                .In(Tensor::Scalar<int64_t>(-1))
                .Attr("exclusive", exclusive)
                .Run1();
  };
  EXPECT_TRUE(
      Same(cumprod(Tensor::Vector<float>({1, 2, 3}), false), Tensor::Vector<float>({1, 2, 6})));
  EXPECT_TRUE(Same(cumprod(Tensor::Vector<half>({half(2), half(3), half(4)}), true),
                   Tensor::Vector<half>({half(1), half(2), half(6)})));
  EXPECT_TRUE(
      Same(cumprod(Tensor(DType::kFloat, Shape{2, 0}), true), Tensor(DType::kFloat, Shape{2, 0})));
}

TEST(UnsortedSegmentSum, SumsByName) {
  const auto sum = [](const Tensor& data, const Tensor& ids, int32_t n) {
    return OpRunner("UnsortedSegmentSum").In(data).In(ids).In(Tensor::Scalar(n)).Run1();
  };
  const Tensor data = Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(Same(*sum(data, Tensor::Vector<int32_t>({2, 0, 2, -1}), 3),
                   Tensor::Of<float>({3, 2}, {3, 4, 0, 0, 6, 8})));
  EXPECT_TRUE(Same(*sum(data, Tensor::Of<int64_t>({4, 2}, {0, 1, 0, 1, 0, 1, 1, 0}), 2),
                   Tensor::Vector<float>({17, 19})));
  EXPECT_TRUE(Same(*sum(Tensor(DType::kInt32, Shape{0, 2}), Tensor(DType::kInt32, Shape{0}), 2),
                   Tensor::Of<int32_t>({2, 2}, {0, 0, 0, 0})));
  EXPECT_THAT(sum(data, Tensor::Vector<int32_t>({0, 0, 5, 0}), 3).status().message(),
              testing::HasSubstr("segment_ids[2] = 5 is out of range"));
  EXPECT_FALSE(sum(data, Tensor::Vector<int32_t>({0, 0}), 3).ok());
  EXPECT_FALSE(sum(data, Tensor::Vector<int32_t>({0, 0, 0, 0}), -1).ok());
}

TEST(UnsortedSegmentSum, ManyRowsOverThreads) {
  constexpr int kRows = 5000, kWidth = 64, kSegments = 37;
  Tensor data(DType::kHalf, Shape{kRows, kWidth}), ids(DType::kInt64, Shape{kRows});
  std::vector<float> exact(kSegments);
  for (half& v : data.mutable_flat<half>()) v = half(1);
  for (int i = 0; i < kRows; ++i) exact[ids.mutable_flat<int64_t>()[i] = i * 11 % kSegments] += 1;
  const auto y =
      OpRunner("UnsortedSegmentSum").In(data).In(ids).In(Tensor::Scalar<int64_t>(kSegments)).Run1();
  for (int i = 0; i < kSegments * kWidth; ++i) {
    ASSERT_EQ(static_cast<float>(y->flat<half>()[i]), exact[i / kWidth]);
  }
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Compares reductions over every set of axes of several shapes with plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "core/op/testing/op_runner.h"
#include "kernels/math/testing/test_tensors.h"

namespace penstock {
namespace {

// Returns, for every output, the indices of its elements in input order, computed one at a time.
// Sets *kept to the shape of the outputs. Dimension d is reduced if bit d of `reduced` is set.
std::vector<std::vector<int64_t>> Groups(const Shape& shape, unsigned reduced, Shape* kept) {
  *kept = Shape();
  for (int d = 0; d < shape.rank(); ++d) {
    if ((reduced >> d & 1) == 0) kept->AddDim(shape.dim(d));
  }
  std::vector<std::vector<int64_t>> groups(kept->num_elements());
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    int64_t index = i, output = 0, stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const int64_t at = index % shape.dim(d);
      index /= shape.dim(d);
      if (reduced >> d & 1) continue;
      output += at * stride;
      stride *= shape.dim(d);
    }
    groups[output].push_back(i);
  }
  return groups;
}

const Shape kShapes[] = {Shape{},           Shape{1},          Shape{7},         Shape{3, 5},
                         Shape{2, 3, 4},    Shape{2, 1, 3, 4}, Shape{0, 3},      Shape{3, 0, 2},
                         Shape{2, 3, 2, 5}, Shape{70, 130},    Shape{5, 40, 33}, Shape{200000},
                         Shape{3000, 70}};

Tensor Axes(unsigned reduced, int rank, bool negative, bool wide) {
  std::vector<int32_t> axes;
  for (int d = rank - 1; d >= 0; --d) {
    if (reduced >> d & 1) axes.push_back(negative ? d - rank : d);
  }
  if (!wide) return Tensor::Vector<int32_t>(axes);
  return Tensor::Vector<int64_t>({axes.begin(), axes.end()});
}

template <class T>
using Fold = std::function<T(const std::vector<T>&)>;

template <class T>
void Check(const char* op, const Fold<T>& fold, double tolerance) {
  for (const Shape& shape : kShapes) {
    Tensor x(kDTypeOf<T>, shape);
    for (int64_t i = 0; i < x.num_elements(); ++i) x.mutable_flat<T>()[i] = T(i * 7 % 13 - 5);
    for (unsigned reduced = 0; reduced < 1u << shape.rank(); ++reduced) {
      Shape kept;
      const auto groups = Groups(shape, reduced, &kept);
      const auto y =
          OpRunner(op).In(x).In(Axes(reduced, shape.rank(), reduced & 1, reduced & 2)).Run1();
      ASSERT_TRUE(y.ok()) << op << shape.ToString() << y.status();
      ASSERT_EQ(y->shape(), kept);
      for (size_t i = 0; i < groups.size(); ++i) {
        std::vector<T> elements;
        for (int64_t at : groups[i]) elements.push_back(x.flat<T>()[at]);
        const T exact = fold(elements), actual = y->flat<T>()[i];
        if constexpr (std::is_same_v<T, std::complex<double>>) {
          ASSERT_LE(std::abs(exact - actual), tolerance * (1 + std::abs(exact)));
        } else {
          const double a = static_cast<double>(exact), b = static_cast<double>(actual);
          if (std::isnan(a) && std::isnan(b)) continue;
          ASSERT_TRUE(a == b || std::abs(a - b) <= tolerance * (1 + std::abs(a)))
              << op << shape.ToString() << " axes " << reduced << " output " << i << ": " << b
              << ", expected " << a;
        }
      }
    }
  }
}

template <class T, class Wide>
T SumOf(const std::vector<T>& v) {
  Wide sum(0);
  for (T x : v) sum += Wide(x);
  return T(sum);
}

template <class T>
void CheckAll(double tolerance) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  Check<T>("Sum", SumOf<T, Wide>, tolerance);
  Check<T>(
      "Max",
      [](const std::vector<T>& v) {
        T best = std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : T(-INFINITY);
        for (T x : v) best = x > best ? x : best;
        return best;
      },
      0);
  Check<T>(
      "Min",
      [](const std::vector<T>& v) {
        T best = std::is_integral_v<T> ? std::numeric_limits<T>::max() : T(INFINITY);
        for (T x : v) best = x < best ? x : best;
        return best;
      },
      0);
  Check<T>(
      "Mean",
      [](const std::vector<T>& v) {
        double sum = 0;
        for (T x : v) sum += static_cast<double>(x);
        if (std::is_integral_v<T> && v.empty()) return T(0);
        return T(std::is_integral_v<T> ? std::trunc(sum / v.size()) : sum / v.size());
      },
      tolerance);
}

TEST(Reduction, Float) { CheckAll<float>(1e-6); }
TEST(Reduction, Double) { CheckAll<double>(1e-14); }
TEST(Reduction, Int32) { CheckAll<int32_t>(0); }
TEST(Reduction, Int8WrapsInSums) { Check<int8_t>("Sum", SumOf<int8_t, uint32_t>, 0); }
TEST(Reduction, Uint64) { Check<uint64_t>("Sum", SumOf<uint64_t, uint64_t>, 0); }
TEST(Reduction, Complex) {
  using C = std::complex<double>;
  Check<C>("Sum", SumOf<C, C>, 1e-14);
}

TEST(Reduction, Norm) {
  Check<float>(
      "EuclideanNorm",
      [](const std::vector<float>& v) {
        double sum = 0;
        for (float x : v) sum += double{x} * x;
        return static_cast<float>(std::sqrt(sum));
      },
      1e-6);
}

TEST(Reduction, Prod) {
  const Tensor x = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto prod = [&](int32_t axis) {
    return *OpRunner("Prod").In(x).In(Tensor::Scalar(axis)).Run1();
  };
  EXPECT_TRUE(Same(prod(0), Tensor::Vector<float>({4, 10, 18})));
  EXPECT_TRUE(Same(prod(-1), Tensor::Vector<float>({6, 120})));
  EXPECT_TRUE(
      Same(*OpRunner("Prod").In(Tensor::Vector<double>({})).In(Tensor::Scalar<int32_t>(0)).Run1(),
           Tensor::Scalar<double>(1)));
}

// 16-bit floats are accumulated in a wider type: 4096 ones give 4096, although 2048 + 1 rounds to
// 2048.
TEST(Reduction, Float16AddsUpInFloat) {
  Tensor ones(DType::kHalf, Shape{3, 4096});
  for (half& v : ones.mutable_flat<half>()) v = half(1);
  for (int32_t axis : {0, 1}) {
    const auto sum = *OpRunner("Sum").In(ones).In(Tensor::Scalar(axis)).Run1();
    for (half v : sum.flat<half>()) ASSERT_EQ(static_cast<float>(v), axis == 0 ? 3 : 4096);
  }
}

TEST(Reduction, FloatSumsStayExact) {
  Tensor x(DType::kFloat, Shape{1 << 22});
  for (float& v : x.mutable_flat<float>()) v = 0.1f;
  const float sum = OpRunner("Sum").In(x).In(Tensor::Scalar(0)).Run1()->scalar<float>();
  EXPECT_FLOAT_EQ(sum, static_cast<float>(double{0.1f} * (1 << 22)));
}

TEST(Reduction, NotANumberWins) {
  const Tensor x = Tensor::Of<float>({2, 3}, {1, NAN, 3, 4, 5, 6});
  for (const char* op : {"Max", "Min"}) {
    const auto rows = *OpRunner(op).In(x).In(Tensor::Scalar(1)).Run1();
    EXPECT_TRUE(std::isnan(rows.flat<float>()[0]) && !std::isnan(rows.flat<float>()[1])) << op;
    const auto columns = *OpRunner(op).In(x).In(Tensor::Scalar(0)).Run1();
    EXPECT_TRUE(std::isnan(columns.flat<float>()[1]) && !std::isnan(columns.flat<float>()[0]));
  }
}

TEST(Reduction, TruthValues) {
  const Tensor x = Tensor::Of<bool>({2, 2}, {true, false, true, true});
  const auto run = [&](const char* op, int32_t axis) {
    return *OpRunner(op).In(x).In(Tensor::Scalar(axis)).Run1();
  };
  EXPECT_TRUE(Same(run("All", 0), Tensor::Vector<bool>({true, false})));
  EXPECT_TRUE(Same(run("All", 1), Tensor::Vector<bool>({false, true})));
  EXPECT_TRUE(Same(run("Any", 0), Tensor::Vector<bool>({true, true})));
  const Tensor none(DType::kBool, Shape{0, 2});
  EXPECT_TRUE(Same(*OpRunner("All").In(none).In(Tensor::Scalar(0)).Run1(),
                   Tensor::Vector<bool>({true, true})));
  EXPECT_TRUE(Same(*OpRunner("Any").In(none).In(Tensor::Scalar(0)).Run1(),
                   Tensor::Vector<bool>({false, false})));
}

TEST(Reduction, KeepDims) {
  const Tensor x = Tensor::Of<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const auto y =
      OpRunner("Sum").In(x).In(Tensor::Vector<int32_t>({1, -1})).Attr("keep_dims", true).Run1();
  EXPECT_TRUE(Same(*y, Tensor::Of<float>({2, 1, 1}, {6, 15})));
}

TEST(Reduction, Mistakes) {
  const Tensor x(DType::kFloat, Shape{2, 3});
  const auto error = [&](std::vector<int32_t> axes) {
    const auto y = OpRunner("Sum").In(x).In(Tensor::Vector<int32_t>(axes)).Run1();
    EXPECT_EQ(y.status().code(), StatusCode::kInvalidArgument);
    return std::string(y.status().message());
  };
  EXPECT_THAT(error({2}),
              testing::HasSubstr("Invalid reduction dimension (2 for input with 2 dimension(s))"));
  EXPECT_THAT(error({-3}),
              testing::HasSubstr("Invalid reduction dimension (-3 for input with 2 dimension(s))"));
  EXPECT_THAT(error({1, -1}), testing::HasSubstr("named twice"));
}

TEST(Reduction, AxesOfAnyShape) {
  const Tensor x = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor both = Tensor::Of<int32_t>({2, 1}, {0, 1});
  EXPECT_TRUE(Same(*OpRunner("Sum").In(x).In(both).Run1(), Tensor::Scalar(21.0f)));
}

TEST(Reduction, L2Loss) {
  EXPECT_TRUE(Same(*OpRunner("L2Loss").In(Tensor::Of<float>({2, 1}, {3, 4})).Run1(),
                   Tensor::Scalar<float>(12.5f)));
  EXPECT_TRUE(Same(*OpRunner("L2Loss").In(Tensor::Vector<half>({half(3), half(4)})).Run1(),
                   Tensor::Scalar(half(12.5f))));
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests Select, SelectV2, ClipByValue, AddN, BroadcastTo and the ops on shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "core/op/testing/op_runner.h"
#include "kernels/math/testing/test_tensors.h"

namespace penstock {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

TEST(Select, ByElementRowAndScalar) {
  const Tensor t = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor e = Tensor::Of<float>({2, 2}, {-1, -2, -3, -4});
  const auto select = [&](const Tensor& c) { return OpRunner("Select").In(c).In(t).In(e).Run1(); };
  EXPECT_TRUE(Same(*select(Tensor::Of<bool>({2, 2}, {true, false, false, true})),
                   Tensor::Of<float>({2, 2}, {1, -2, -3, 4})));
  EXPECT_TRUE(Same(*select(Tensor::Vector<bool>({false, true})),
                   Tensor::Of<float>({2, 2}, {-1, -2, 3, 4})));
  EXPECT_TRUE(Same(*select(Tensor::Scalar(true)), t));
  EXPECT_FALSE(select(Tensor::Vector<bool>({true})).ok());
  EXPECT_FALSE(select(Tensor::Of<bool>({1, 2}, {true, true})).ok());
  EXPECT_FALSE(
      OpRunner("Select").In(Tensor::Scalar(true)).In(t).In(Tensor::Scalar(1.0f)).Run1().ok());
}

TEST(Select, EverySizeOfElement) {
  const Tensor c = Tensor::Vector<bool>({true, false});
  const auto check = [&](const Tensor& t, const Tensor& e, const Tensor& y) {
    EXPECT_TRUE(Same(*OpRunner("Select").In(c).In(t).In(e).Run1(), y));
    EXPECT_TRUE(Same(*OpRunner("SelectV2").In(c).In(t).In(e).Run1(), y));
  };
  using S = std::string;
  using C = std::complex<double>;
  check(Tensor::Vector<bool>({true, true}), Tensor::Vector<bool>({false, false}),
        Tensor::Vector<bool>({true, false}));
  check(Tensor::Vector<int16_t>({1, 2}), Tensor::Vector<int16_t>({3, 4}),
        Tensor::Vector<int16_t>({1, 4}));
  check(Tensor::Vector<double>({1, 2}), Tensor::Vector<double>({3, 4}),
        Tensor::Vector<double>({1, 4}));
  check(Tensor::Vector<C>({1, 2}), Tensor::Vector<C>({3, 4}), Tensor::Vector<C>({1, 4}));
  check(Tensor::Vector<S>({"a", "b"}), Tensor::Vector<S>({"c", "d"}),
        Tensor::Vector<S>({"a", "d"}));
}

TEST(SelectV2, Broadcasts) {
  const auto y = OpRunner("SelectV2")
                     .In(Tensor::Of<bool>({2, 1}, {true, false}))
                     .In(Tensor::Vector<float>({1, 2, 3}))
                     .In(Tensor::Scalar<float>(0))
                     .Run1();
  EXPECT_TRUE(Same(*y, Tensor::Of<float>({2, 3}, {1, 2, 3, 0, 0, 0})));
  const auto rows = OpRunner("SelectV2")
                        .In(Tensor::Vector<bool>({true, false, true}))
                        .In(Tensor::Of<float>({2, 1}, {1, 2}))
                        .In(Tensor::Of<float>({2, 3}, {5, 6, 7, 8, 9, 10}))
                        .Run1();
  EXPECT_TRUE(Same(*rows, Tensor::Of<float>({2, 3}, {1, 6, 1, 2, 9, 2})));
}

TEST(ClipByValue, ScalarsAndTensors) {
  const auto clip = [](Tensor x, Tensor low, Tensor high) {
    return OpRunner("ClipByValue").In(x).In(low).In(high).Run1();
  };
  const Tensor x = Tensor::Vector<float>({-5, 0.5, 5, NAN});
  const Tensor y = *clip(x, Tensor::Scalar<float>(-1), Tensor::Scalar<float>(1));
  EXPECT_EQ((Floats{y.flat<float>().begin(), y.flat<float>().begin() + 3}), (Floats{-1, 0.5, 1}));
  EXPECT_TRUE(std::isnan(y.flat<float>()[3]));
  EXPECT_TRUE(Same(*clip(Tensor::Vector<int32_t>({1, 2, 3}), Tensor::Vector<int32_t>({2, 2, 2}),
                         Tensor::Scalar<int32_t>(2)),
                   Tensor::Vector<int32_t>({2, 2, 2})));
  EXPECT_TRUE(Same(*clip(Tensor::Vector<half>({half(1), half(9)}), Tensor::Scalar(half(2)),
                         Tensor::Scalar(half(3))),
                   Tensor::Vector<half>({half(2), half(3)})));
  EXPECT_FALSE(clip(Tensor::Scalar<float>(1), x, x).ok());
}

TEST(AddN, Sums) {
  for (int n : {1, 2, 5}) {
    std::vector<Tensor> floats, halves;
    for (int i = 0; i < n; ++i) {
      floats.push_back(Tensor(DType::kFloat, Shape{10, 1000}));
      halves.push_back(Tensor(DType::kHalf, Shape{3000}));
      for (int k = 0; k < 10000; ++k) {
        floats[i].mutable_flat<float>()[k] = static_cast<float>(k + i);
      }
      for (half& h : halves[i].mutable_flat<half>()) h = half(i + 1);
    }
    const auto sum = OpRunner("AddN").InList(floats).Run1();
    for (int k = 0; k < 10000; ++k) {
      ASSERT_EQ(sum->flat<float>()[k], static_cast<float>(n * k + n * (n - 1) / 2));
    }
    const auto half_sum = OpRunner("AddN").InList(halves).Run1();
    for (half h : half_sum->flat<half>()) ASSERT_EQ(static_cast<float>(h), n * (n + 1) / 2);
  }
  EXPECT_FALSE(
      OpRunner("AddN").InList({Tensor::Scalar<float>(1), Tensor::Vector<float>({1})}).Run1().ok());
  const Tensor pair = Tensor::Vector<float>({1, 2});
  EXPECT_TRUE(Same(
      *OpRunner("AccumulateNV2").InList({pair, pair, pair}).Attr("shape", PartialShape({2})).Run1(),
      Tensor::Vector<float>({3, 6})));
}

TEST(BroadcastTo, Repeats) {
  const auto to = [](const Tensor& x, Ints shape) {
    return OpRunner("BroadcastTo").In(x).In(Tensor::Vector<int32_t>(shape)).Run1();
  };
  EXPECT_TRUE(
      Same(*to(Tensor::Vector<float>({1, 2}), {2, 2}), Tensor::Of<float>({2, 2}, {1, 2, 1, 2})));
  EXPECT_TRUE(Same(*to(Tensor::Of<std::string>({2, 1}, {"a", "b"}), {2, 2}),
                   Tensor::Of<std::string>({2, 2}, {"a", "a", "b", "b"})));
  EXPECT_EQ(to(Tensor::Scalar<float>(1), {0, 3})->shape(), (Shape{0, 3}));
  EXPECT_FALSE(to(Tensor::Vector<float>({1, 2}), {3}).ok());
  EXPECT_FALSE(to(Tensor::Vector<float>({1, 2}), {1}).ok());
  EXPECT_FALSE(to(Tensor::Scalar<float>(1), {-1}).ok());
}

TEST(BroadcastArgs, Shapes) {
  const auto shape = [](Ints a, Ints b) {
    return OpRunner("BroadcastArgs")
        .In(Tensor::Vector<int32_t>(a))
        .In(Tensor::Vector<int32_t>(b))
        .Run1();
  };
  EXPECT_TRUE(Same(*shape({2, 1}, {3}), Tensor::Vector<int32_t>({2, 3})));
  EXPECT_TRUE(Same(*shape({}, {0, 1}), Tensor::Vector<int32_t>({0, 1})));
  EXPECT_FALSE(shape({2}, {3}).ok());
}

TEST(BroadcastGradientArgs, Axes) {
  const auto axes = [](Ints a, Ints b) {
    return *OpRunner("BroadcastGradientArgs")
                .In(Tensor::Vector<int32_t>(a))
                .In(Tensor::Vector<int32_t>(b))
                .Run();
  };
  const auto expect = [&](Ints a, Ints b, Ints r0, Ints r1) {
    const auto r = axes(a, b);
    EXPECT_TRUE(Same(r[0], Tensor::Vector<int32_t>(r0)));
    EXPECT_TRUE(Same(r[1], Tensor::Vector<int32_t>(r1)));
  };
  expect({2, 3}, {2, 3}, {}, {});
  expect({2, 3}, {3}, {}, {0});
  expect({2, 1}, {3}, {1}, {0});
  expect({}, {4, 5}, {0, 1}, {});
  expect({1}, {1}, {}, {});
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests ops whose output depends on values: OneHot, Where, Unique, UniqueWithCounts, ListDiff,
// TopK, InTopK.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

template <class T>
Tensor V(const std::vector<T>& values) {
  return Tensor::Vector<T>(values);
}

template <class Index>
void CheckOneHot(DType dtype) {
  const Tensor indices = Tensor::Of<Index>({2, 3}, {0, 2, Index(4), 1, Index(-1), 9});
  const Tensor values = Sample(dtype, {2}, 77);
  const Tensor on = values.Slice(0, 1).Reshaped({}), off = values.Slice(1, 2).Reshaped({});
  for (int axis = -1; axis <= 2; ++axis) {
    const int at = axis < 0 ? 2 : axis;
    Shape shape({2, 3});
    shape.InsertDim(at, 5);
    const Tensor y =
        OpCall{"OneHot", {indices, Tensor::Scalar<int32_t>(5), on, off}, {{"axis", axis}}}.Run1();
    ExpectMoved(y, shape, values, [&](const Dims& place) {
      Dims of = place;
      of.erase(of.begin() + at);
      const auto index = static_cast<int64_t>(indices.data<Index>()[FlatIndex({2, 3}, of)]);
      return Dims{index == place[at] ? 0 : 1};
    });
  }
}

TEST(OneHot, EveryAxisAndType) {
  for (const DType dtype : kMovedTypes) {
    CheckOneHot<uint8_t>(dtype);
    CheckOneHot<int8_t>(dtype);
    CheckOneHot<int32_t>(dtype);
    CheckOneHot<int64_t>(dtype);
  }
  const Tensor one = Tensor::Scalar<float>(1);
  const auto expect = [&](int depth, const Tensor& on, int axis, const char* words) {
    OpCall{"OneHot", {Ints({1}), Tensor::Scalar<int32_t>(depth), on, one}, {{"axis", axis}}}
        .ExpectError(words);
  };
  expect(-1, one, -1, "depth must be non-negative, got: -1");
  expect(3, V<float>({1, 2}), -1, "on_value must be a scalar, but got: [2]");
  expect(3, one, 2, "Expected axis to be -1 or between [0, 1].  But received: 2");
}

template <class T>
void CheckWhere() {
  const Tensor x = Tensor::Of<T>({2, 2, 2}, {T(0), T(1), T(0), T(0), T(1), T(1), T(0), T(1)});
  EXPECT_TRUE(SameTensor(OpCall{"Where", {x}}.Run1(),
                         Tensor::Of<int64_t>({4, 3}, {0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1})));
}

TEST(Where, FindsWhatIsNotZero) {
  CheckWhere<bool>();
  CheckWhere<int8_t>();
  CheckWhere<uint16_t>();
  CheckWhere<int32_t>();
  CheckWhere<uint64_t>();
  CheckWhere<half>();
  CheckWhere<bfloat16>();
  CheckWhere<float>();
  CheckWhere<double>();
  CheckWhere<std::complex<float>>();
  CheckWhere<std::complex<double>>();
  const float nan = std::nanf("");
  EXPECT_TRUE(SameTensor(OpCall{"Where", {V<float>({-0.f, nan, 1e-45f})}}.Run1(),
                         Tensor::Of<int64_t>({2, 1}, {1, 2})));
  using C = std::complex<float>;
  EXPECT_TRUE(SameTensor(OpCall{"Where", {V<C>({{0, 0}, {0, 3}, {-0.f, -0.f}})}}.Run1(),
                         Tensor::Of<int64_t>({1, 1}, {1})));
  EXPECT_EQ((OpCall{"Where", {Tensor::Scalar<bool>(true)}}.Run1().shape()), Shape({1, 0}));
  EXPECT_EQ((OpCall{"Where", {Tensor::Scalar<bool>(false)}}.Run1().shape()), Shape({0, 0}));
  EXPECT_EQ((OpCall{"Where", {Sample(DType::kFloat, {0, 3})}}.Run1().shape()), Shape({0, 2}));
}

template <class T>
void CheckUnique(const std::vector<T>& x, const std::vector<T>& y, const std::vector<int32_t>& idx,
                 const std::vector<int32_t>& counts) {
  const auto plain = OpCall{"Unique", {V<T>(x)}}.Run();
  const auto counted = OpCall{"UniqueWithCounts", {V<T>(x)}}.Run();
  for (const auto* outputs : {&plain, &counted}) {
    EXPECT_TRUE(SameTensor((*outputs)[0], V<T>(y)));
    EXPECT_TRUE(SameTensor((*outputs)[1], Ints(idx)));
  }
  EXPECT_TRUE(SameTensor(counted[2], Ints(counts)));
}

TEST(Unique, KeepsTheFirstOfEach) {
  CheckUnique<int32_t>({1, 1, 2, 4, 4, 4, 7, 8, 8}, {1, 2, 4, 7, 8}, {0, 0, 1, 2, 2, 2, 3, 4, 4},
                       {2, 1, 3, 1, 2});
  CheckUnique<int64_t>({-5, 3, -5}, {-5, 3}, {0, 1, 0}, {2, 1});
  CheckUnique<uint8_t>({255, 0, 255}, {255, 0}, {0, 1, 0}, {2, 1});
  CheckUnique<std::string>({"b", "a", "b", ""}, {"b", "a", ""}, {0, 1, 0, 2}, {2, 1, 1});
  CheckUnique<half>({half(2), half(1), half(2)}, {half(2), half(1)}, {0, 1, 0}, {2, 1});
  CheckUnique<double>({-0.0, 0.0, 1e-300}, {-0.0, 1e-300}, {0, 0, 1}, {2, 1});
  CheckUnique<float>({}, {}, {}, {});
  const float nan = std::nanf("");
  CheckUnique<float>({nan, 1, nan}, {nan, 1, nan}, {0, 1, 2}, {1, 1, 1});
  EXPECT_TRUE(SameTensor(OpCall{"Unique", {Ints({3, 3})}, {{"out_idx", DType::kInt64}}}.Run()[1],
                         Longs({0, 0})));
  OpCall{"Unique", {Pairs({1, 2})}}.ExpectError("unique expects a 1D vector, got shape [1,2]");
}

TEST(ListDiff, LeavesWhatIsNotInY) {
  const auto diff = [](const Tensor& x, const Tensor& y) {
    return OpCall{"ListDiff", {x, y}}.Run();
  };
  auto out = diff(Ints({1, 2, 3, 4, 5, 6, 2}), Ints({1, 3, 5, 9}));
  EXPECT_TRUE(SameTensor(out[0], Ints({2, 4, 6, 2})));
  EXPECT_TRUE(SameTensor(out[1], Ints({1, 3, 5, 6})));
  out = diff(V<std::string>({"a", "b"}), V<std::string>({"b"}));
  EXPECT_TRUE(SameTensor(out[0], V<std::string>({"a"})));
  const double nan = std::nan("");
  out = diff(V<double>({nan, 0, 1}), V<double>({nan, -0.0}));
  EXPECT_TRUE(SameTensor(out[1], Ints({0, 2})));
  OpCall{"ListDiff", {Pairs({1, 2}), Ints({1})}}.ExpectError("x should be a 1D vector.");
  OpCall{"ListDiff", {Ints({1}), Pairs({1, 2})}}.ExpectError("y should be a 1D vector.");
}

template <class T>
void CheckTopK(const Shape& shape, int k) {
  Tensor x(kDTypeOf<T>, shape);
  const int64_t columns = shape.dim(shape.rank() - 1);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t number = i * 7919 % 101;
    x.mutable_data<T>()[i] = T(std::is_unsigned_v<T> ? number : number - 50);
  }
  const auto outputs = OpCall{"TopKV2", {x, Tensor::Scalar<int32_t>(k)}}.Run();
  const auto by_attr = OpCall{"TopK", {x}, {{"k", k}}}.Run();
  for (int64_t row = 0; columns > 0 && row < x.num_elements() / columns; ++row) {
    const T* data = x.data<T>() + row * columns;
    std::vector<int32_t> order(columns);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return data[a] > data[b]; });
    for (int i = 0; i < k; ++i) {
      ASSERT_EQ(outputs[1].data<int32_t>()[row * k + i], order[i]);
      ASSERT_EQ(outputs[0].data<T>()[row * k + i], data[order[i]]);
    }
  }
  EXPECT_TRUE(SameTensor(by_attr[0], outputs[0]));
  EXPECT_TRUE(SameTensor(by_attr[1], outputs[1]));
}

template <class T>
void CheckTopKShapes() {
  CheckTopK<T>({5}, 2);
  CheckTopK<T>({3, 7}, 7);
  CheckTopK<T>({2, 3, 200}, 3);
  CheckTopK<T>({4, 1000}, 40);
  CheckTopK<T>({4, 10}, 0);
  CheckTopK<T>({0, 10}, 2);
}

TEST(TopK, SortsWithTheLowerIndexFirst) {
  CheckTopKShapes<float>();
  CheckTopKShapes<double>();
  CheckTopKShapes<half>();
  CheckTopKShapes<bfloat16>();
  CheckTopKShapes<int8_t>();
  CheckTopKShapes<int16_t>();
  CheckTopKShapes<int32_t>();
  CheckTopKShapes<int64_t>();
  CheckTopKShapes<uint8_t>();
  CheckTopKShapes<uint16_t>();
  CheckTopKShapes<uint32_t>();
  CheckTopKShapes<uint64_t>();
}

TEST(TopK, CornerCases) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto outputs =
      OpCall{"TopKV2", {V<float>({-inf, 0, -0.f, inf, 1e-45f}), Tensor::Scalar<int32_t>(5)}}.Run();
  EXPECT_TRUE(SameTensor(outputs[1], Ints({3, 4, 1, 2, 0})));
  const auto unsorted =
      OpCall{"TopKV2", {Ints({3, 9, 5, 7}), Tensor::Scalar<int32_t>(2)}, {{"sorted", false}}}.Run();
  const auto values = unsorted[0].flat<int32_t>();
  EXPECT_EQ(std::max(values[0], values[1]), 9);
  EXPECT_EQ(std::min(values[0], values[1]), 7);
  const auto wide = OpCall{
      "TopKV2",
      {Ints({3, 9, 5}), Tensor::Scalar<int64_t>(2)},
      {{"index_type",
        DType::kInt64}}}.Run();
  EXPECT_TRUE(SameTensor(wide[1], Tensor::Vector<int64_t>({1, 2})));
  const auto expect = [](const Tensor& x, int k, const char* words) {
    OpCall{"TopKV2", {x, Tensor::Scalar<int32_t>(k)}}.ExpectError(words);
  };
  expect(Ints({1, 2}), 3, "input must have at least k columns. Had 2, needed 3");
  expect(Ints({1, 2}), -1, "Need k >= 0, got -1");
  expect(Tensor::Scalar<float>(1), 0, "input must be >= 1-D");
}

TEST(InTopK, CountsTheLarger) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor predictions =
      Tensor::Of<float>({6, 4}, {0.1f, 0.3f, 0.2f, 0.4f, 0.1f, 0.2f, 0.3f, 0.4f, 1, 1, 1, 1,
                                 1,    2,    inf,  3,    1,    2,    3,    4,    1, 2, 3, 4});
  const Tensor targets = Ints({3, 2, 0, 1, 4, -1});
  const auto in_top = [&](int k, std::vector<bool> expected) {
    Tensor want(DType::kBool, {6});
    std::copy(expected.begin(), expected.end(), want.mutable_data<bool>());
    EXPECT_TRUE(SameTensor(OpCall{"InTopK", {predictions, targets}, {{"k", k}}}.Run1(), want));
    EXPECT_TRUE(SameTensor(
        OpCall{"InTopKV2", {predictions, targets, Tensor::Scalar<int32_t>(k)}}.Run1(), want));
  };
  in_top(1, {true, false, true, false, false, false});
  in_top(2, {true, true, true, false, false, false});
  in_top(0, {false, false, false, false, false, false});
  OpCall{"InTopK", {predictions, Ints({1})}, {{"k", 1}}}.ExpectError(
      "must match length of targets 1");
  OpCall{"InTopK", {V<float>({1}), Ints({1})}, {{"k", 1}}}.ExpectError(
      "predictions must be 2-dimensional");
  OpCall{"InTopK", {predictions, Pairs({1, 2})}, {{"k", 1}}}.ExpectError(
      "targets must be 1-dimensional");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests ops that return shapes, share buffers, or make tensors by a rule: Identity and similar ops,
// Reshape, ExpandDims, Squeeze, Bitcast, Shape, ShapeN, Size, Rank, Fill, OnesLike, Range,
// LinSpace, CheckNumerics.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

template <class T>
Tensor S(T value) {
  return Tensor::Scalar<T>(value);
}

TEST(Identity, SharesItsInput) {
  for (const DType dtype : kMovedTypes) {
    const Tensor x = Sample(dtype, {2, 3});
    for (const char* op : {"Identity", "Snapshot", "StopGradient", "PreventGradient"}) {
      const Tensor y = OpCall{op, {x}}.Run1();
      EXPECT_TRUE(y.SharesBufferWith(x)) << op;
      EXPECT_EQ(y.shape(), x.shape());
    }
  }
  const std::vector<Tensor> xs = {Sample(DType::kFloat, {2}), Sample(DType::kString, {3})};
  const auto ys = OpCall{"IdentityN", {xs}}.Run();
  EXPECT_TRUE(ys[0].SharesBufferWith(xs[0]));
  EXPECT_TRUE(ys[1].SharesBufferWith(xs[1]));
}

TEST(Reshape, SharesItsInput) {
  struct Case {
    Shape from;
    std::vector<int32_t> to;
    Shape result;
  };
  const Case cases[] = {{{2, 3}, {3, 2}, {3, 2}},
                        {{2, 3}, {-1}, {6}},
                        {{2, 3}, {1, -1, 2}, {1, 3, 2}},
                        {{1}, {}, {}},
                        {{}, {1, 1}, {1, 1}},
                        {{0, 3}, {3, -1}, {3, 0}},
                        {{0}, {0, 7}, {0, 7}},
                        {{2, 3}, {-1, 6}, {1, 6}}};
  for (const Case& c : cases) {
    for (const DType dtype : kMovedTypes) {
      const Tensor x = Sample(dtype, c.from);
      const Tensor y = OpCall{"Reshape", {x, Ints(c.to)}}.Run1();
      EXPECT_EQ(y.shape(), c.result);
      EXPECT_TRUE(y.SharesBufferWith(x));
    }
  }
}

// Sizes of zero do not determine the size that is left out: as in TensorFlow, it follows from the
// non-zero sizes.
TEST(Reshape, EmptyTensorsWithASizeLeftOut) {
  const struct {
    Dims from;
    std::vector<int64_t> to;
    Shape result;
  } kCases[] = {
      {{0, 3}, {-1}, {0}},          {{0, 3}, {3, -1}, {3, 0}},
      {{0, 3}, {0, -1}, {0, 3}},    {{0}, {0, -1}, {0, 1}},
      {{0, 0, 5}, {0, -1}, {0, 5}}, {{0, 3}, {-1, 0, 2}, {1, 0, 2}},
      {{0}, {-1, 0, 2}, {0, 0, 2}}, {{0, 0, 5}, {-1, 0, 2}, {2, 0, 2}},
      {{0, 3}, {-1, 0}, {3, 0}},
  };
  for (const auto& c : kCases) {
    const Tensor y = OpCall{"Reshape", {Tensor(DType::kFloat, Shape(c.from)), Longs(c.to)}}.Run1();
    EXPECT_EQ(y.shape(), c.result) << Shape(c.from).ToString();
  }
}

TEST(Reshape, Mistakes) {
  const auto expect = [](const Shape& from, std::vector<int64_t> to, const char* words) {
    OpCall{"Reshape", {Sample(DType::kFloat, from), Longs(to)}}.ExpectError(words);
  };
  expect({5}, {2, 3}, "Input to reshape is a tensor with 5 values, but the requested shape has 6");
  expect({5}, {2, -1},
         "Input to reshape is a tensor with 5 values, but the requested shape requires a multiple "
         "of 2");
  expect({4}, {-1, -1}, "only one input size may be -1, not both 0 and 1");
  expect({4}, {-2, 2}, "size 0 must be non-negative, not -2");
  expect({4}, {-1, 0}, "requested shape has 0");
  expect({4}, {INT64_MAX, 2}, "more elements than an int64 can count");
  OpCall{"Reshape", {Sample(DType::kFloat, {4}), S<int32_t>(4)}}.ExpectError(
      "shape must be a vector");
}

TEST(ExpandDims, InsertsADimension) {
  const Tensor x = Sample(DType::kFloat, {2, 3});
  const std::pair<int32_t, Shape> cases[] = {{0, {1, 2, 3}},  {1, {2, 1, 3}},  {2, {2, 3, 1}},
                                             {-1, {2, 3, 1}}, {-2, {2, 1, 3}}, {-3, {1, 2, 3}}};
  for (const auto& [dim, shape] : cases) {
    const Tensor y = OpCall{"ExpandDims", {x, S<int32_t>(dim)}}.Run1();
    EXPECT_EQ(y.shape(), shape);
    EXPECT_TRUE(y.SharesBufferWith(x));
  }
  OpCall{"ExpandDims", {x, S<int32_t>(3)}}.ExpectError(
      "Tried to expand dim index 3 for tensor with 2 dimensions.");
  OpCall{"ExpandDims", {x, S<int64_t>(-4)}}.ExpectError("Tried to expand dim index -4");
}

TEST(Squeeze, TakesDimensionsAway) {
  const Tensor x = Sample(DType::kFloat, {1, 2, 1, 3});
  const auto squeeze = [&](std::vector<int64_t> dims) {
    return OpCall{"Squeeze", {x}, {{"squeeze_dims", dims}}};
  };
  EXPECT_EQ(squeeze({}).Run1().shape(), Shape({2, 3}));
  EXPECT_EQ(squeeze({0}).Run1().shape(), Shape({2, 1, 3}));
  EXPECT_EQ(squeeze({-2}).Run1().shape(), Shape({1, 2, 3}));
  EXPECT_EQ(squeeze({0, 2}).Run1().shape(), Shape({2, 3}));
  EXPECT_TRUE(squeeze({}).Run1().SharesBufferWith(x));
  EXPECT_EQ((OpCall{"Squeeze", {Sample(DType::kFloat, {0, 1})}}.Run1().shape()), Shape({0}));
  squeeze({1}).ExpectError("Can not squeeze dim[1], expected a dimension of 1, got 2");
  squeeze({4}).ExpectError("Tried to squeeze dim index 4 for tensor with 4 dimensions.");
}

TEST(Bitcast, ReadsBytesAnew) {
  const Tensor x = Tensor::Of<float>({2}, {1.0f, -2.0f});
  const auto cast = [](const Tensor& x, DType to) {
    return OpCall{"Bitcast", {x}, {{"type", to}}};
  };
  EXPECT_TRUE(SameTensor(cast(x, DType::kInt32).Run1(),
                         Ints({0x3f800000, static_cast<int32_t>(0xc0000000u)})));
  const Tensor bytes = cast(x, DType::kUint8).Run1();
  EXPECT_EQ(bytes.shape(), Shape({2, 4}));
  EXPECT_EQ(bytes.data<uint8_t>()[3], 0x3f);
  EXPECT_TRUE(SameTensor(cast(bytes, DType::kFloat).Run1(), x));
  EXPECT_EQ(cast(x, DType::kInt64).Run1().shape(), Shape());
  cast(Sample(DType::kFloat, {3}), DType::kInt64).ExpectError("Cannot bitcast from float to int64");
  cast(Sample(DType::kFloat, {}), DType::kDouble)
      .ExpectError("Cannot bitcast from float to double");
}

TEST(Shape, TellsDimensions) {
  const Tensor x = Sample(DType::kString, {2, 0, 5});
  EXPECT_TRUE(SameTensor(OpCall{"Shape", {x}}.Run1(), Ints({2, 0, 5})));
  EXPECT_TRUE(
      SameTensor(OpCall{"Shape", {x}, {{"out_type", DType::kInt64}}}.Run1(), Longs({2, 0, 5})));
  EXPECT_TRUE(SameTensor(OpCall{"Shape", {S<float>(1)}}.Run1(), Ints({})));
  const auto shapes = OpCall{"ShapeN", {std::vector<Tensor>{x, Sample(DType::kString, {4})}}}.Run();
  EXPECT_TRUE(SameTensor(shapes[0], Ints({2, 0, 5})));
  EXPECT_TRUE(SameTensor(shapes[1], Ints({4})));
  EXPECT_TRUE(SameTensor(OpCall{"Size", {x}}.Run1(), S<int32_t>(0)));
  EXPECT_TRUE(SameTensor(
      OpCall{"Size", {Sample(DType::kInt8, {3, 4})}, {{"out_type", DType::kInt64}}}.Run1(),
      S<int64_t>(12)));
  EXPECT_TRUE(SameTensor(OpCall{"Rank", {x}}.Run1(), S<int32_t>(3)));
}

TEST(Shape, RefusesWhatInt32CannotHold) {
  const Tensor x(DType::kInt8, {int64_t{1} << 31, 0});
  OpCall{"Shape", {x}}.ExpectError("a dimension of 2147483648");
  EXPECT_EQ((OpCall{"Shape", {x}, {{"out_type", DType::kInt64}}}.Run1().data<int64_t>()[0]),
            int64_t{1} << 31);
}

TEST(Fill, RepeatsAValue) {
  for (const DType dtype : kMovedTypes) {
    const Tensor value = Sample(dtype, {});
    for (const Shape& shape : {Shape(), Shape({0, 3}), Shape({7, 5})}) {
      const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
      ExpectMoved(OpCall{"Fill", {Longs(dims), value}}.Run1(), shape, value,
                  [](const Dims&) { return Dims{}; });
    }
  }
  OpCall{"Fill", {Ints({2, -1}), S<float>(1)}}.ExpectError("negative dimension -1");
  OpCall{"Fill", {S<int32_t>(2), S<float>(1)}}.ExpectError("dims must be a vector");
  OpCall{"Fill", {Ints({2}), Ints({2})}}.ExpectError("value must be a scalar");
  OpCall{"Fill", {Longs({int64_t{1} << 60, 8}), S<float>(1)}}.ExpectError("");
}

TEST(Fill, Ones) {
  const auto ones = [](const Tensor& x) { return OpCall{"OnesLike", {x}}.Run1(); };
  EXPECT_TRUE(SameTensor(ones(S<float>(3)), S<float>(1)));
  EXPECT_TRUE(SameTensor(ones(S<half>(half(3))), S<half>(half(1))));
  EXPECT_TRUE(SameTensor(ones(S<bfloat16>(bfloat16(3))), S<bfloat16>(bfloat16(1))));
  EXPECT_TRUE(SameTensor(ones(S<double>(3)), S<double>(1)));
  EXPECT_TRUE(SameTensor(ones(S<int16_t>(3)), S<int16_t>(1)));
  EXPECT_TRUE(SameTensor(ones(S<uint64_t>(3)), S<uint64_t>(1)));
  EXPECT_TRUE(SameTensor(ones(S<bool>(false)), S<bool>(true)));
  EXPECT_TRUE(SameTensor(ones(S<std::complex<double>>(3)), S<std::complex<double>>(1)));
}

template <class T>
void ExpectRange(T start, T limit, T delta, const std::vector<T>& expected) {
  EXPECT_TRUE(SameTensor(OpCall{"Range", {S(start), S(limit), S(delta)}}.Run1(),
                         Tensor::Vector<T>(expected)));
}

TEST(Range, Counts) {
  ExpectRange<int32_t>(0, 5, 1, {0, 1, 2, 3, 4});
  ExpectRange<int32_t>(5, 0, -2, {5, 3, 1});
  ExpectRange<int32_t>(3, 3, 1, {});
  ExpectRange<int64_t>(INT64_MIN, INT64_MAX, INT64_MAX, {INT64_MIN, -1, INT64_MAX - 1});
  ExpectRange<int64_t>(INT64_MAX, INT64_MIN, INT64_MIN, {INT64_MAX, -1});
  ExpectRange<uint8_t>(250, 255, 2, {250, 252, 254});
  ExpectRange<float>(0, 1, 0.25f, {0, 0.25f, 0.5f, 0.75f});
  ExpectRange<double>(1, 0, -0.375, {1, 0.625, 0.25});
  ExpectRange<half>(half(0), half(3), half(1), {half(0), half(1), half(2)});
}

TEST(Range, Mistakes) {
  OpCall{"Range", {S(0), S(5), S(0)}}.ExpectError("Requires delta != 0");
  OpCall{"Range", {S(5), S(0), S(1)}}.ExpectError("Requires start <= limit when delta > 0: 5/0");
  OpCall{"Range", {S(0), S(5), S(-1)}}.ExpectError("Requires start >= limit when delta < 0: 0/5");
  OpCall{"Range", {Ints({0, 1}), S(5), S(1)}}.ExpectError("start must be a scalar");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OpCall{"Range", {S(0.f), S(nan), S(1.f)}}.ExpectError("more elements");
  OpCall{"Range", {S(0.), S(1e300), S(1e-300)}}.ExpectError("more elements");
}

TEST(LinSpace, EndsWhereItShould) {
  const auto space = [](float a, float b, int n) { return OpCall{"LinSpace", {S(a), S(b), S(n)}}; };
  EXPECT_TRUE(SameTensor(space(10, 12, 3).Run1(), Tensor::Vector<float>({10, 11, 12})));
  EXPECT_TRUE(SameTensor(space(10, 12, 1).Run1(), Tensor::Vector<float>({10})));
  const Tensor tenths = space(0, 0.7f, 8).Run1();
  EXPECT_EQ(tenths.data<float>()[7], 0.7f);
  space(0, 1, 0).ExpectError("Requires num > 0: 0");
}

TEST(CheckNumerics, FindsNanAndInfinity) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto check = [](const Tensor& x) {
    return OpCall{"CheckNumerics", {x}, {{"message", "here"}}};
  };
  const Tensor fine = Tensor::Vector<double>({1, -0.0, 1e308});
  EXPECT_TRUE(check(fine).Run1().SharesBufferWith(fine));
  check(Tensor::Vector<double>({1, nan})).ExpectError("here : Tensor had NaN values");
  check(Tensor::Vector<double>({-inf, 0})).ExpectError("here : Tensor had Inf values");
  check(Tensor::Vector<double>({-nan, inf})).ExpectError("here : Tensor had Inf and NaN values");
  check(Tensor::Vector<half>({half(1e6f)})).ExpectError("Inf values");
  check(Tensor::Vector<bfloat16>({bfloat16(static_cast<float>(nan))})).ExpectError("NaN values");
  check(Tensor::Vector<float>({static_cast<float>(inf)})).ExpectError("Inf values");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests Concat, ConcatV2, ConcatOffset, ParallelConcat, Split, SplitV, Pack, Unpack.
#include <gtest/gtest.h>

#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

// Expects `part` to be the slice of `whole` along an axis that Split and SplitV define.
void ExpectPart(const Tensor& part, const Tensor& whole, int axis, int64_t begin, int64_t size) {
  Shape shape = whole.shape();
  shape.set_dim(axis, size);
  ExpectMoved(part, shape, whole, [&](const Dims& place) {
    Dims from = place;
    from[axis] += begin;
    return from;
  });
}

struct Case {
  Shape shape;
  int axis;
  std::vector<int64_t> sizes;  // along the axis
};

const Case kCases[] = {
    {{7}, 0, {3, 0, 4}},          {{6, 5}, 0, {1, 2, 3}},    {{6, 5}, 1, {2, 3}},
    {{3, 4, 8}, 2, {1, 7}},       {{3, 40, 2}, 1, {16, 24}}, {{64, 4}, 0, {16, 16, 32}},
    {{2, 3, 4, 5}, 1, {1, 1, 1}}, {{0, 4}, 1, {1, 3}},       {{5, 0}, 0, {2, 3}},
    {{300, 257}, 1, {100, 157}},  {{1000, 30}, 0, {1, 999}},
};

TEST(Split, ByGivenSizesAndBackAgain) {
  for (const Case& c : kCases) {
    for (const DType dtype : kMovedTypes) {
      const Tensor whole = Sample(dtype, c.shape);
      const auto parts = OpCall{"SplitV",
                                {whole, Longs(c.sizes), Tensor::Scalar<int32_t>(c.axis)},
                                {{"num_split", static_cast<int64_t>(c.sizes.size())}}}
                             .Run();
      int64_t begin = 0;
      for (size_t i = 0; i < parts.size(); ++i) {
        ExpectPart(parts[i], whole, c.axis, begin, c.sizes[i]);
        begin += c.sizes[i];
      }
      const Tensor axis = Tensor::Scalar<int32_t>(c.axis - c.shape.rank());
      EXPECT_TRUE(SameTensor(OpCall{"Concat", {axis, parts}}.Run1(), whole));
      EXPECT_TRUE(SameTensor(OpCall{"ConcatV2", {parts, axis}}.Run1(), whole));
    }
  }
}

TEST(Split, OneSizeMayBeLeftOpen) {
  const Tensor whole = Sample(DType::kFloat, {2, 9});
  const auto parts = OpCall{
      "SplitV",
      {whole, Ints({2, -1, 3}), Tensor::Scalar<int32_t>(1)},
      {{"num_split", 3}}}.Run();
  EXPECT_EQ(parts[1].shape(), Shape({2, 4}));
}

TEST(Split, IntoEqualParts) {
  for (const DType dtype : kMovedTypes) {
    for (const int axis : {0, 1, 2}) {
      const Tensor whole = Sample(dtype, {16, 4, 8});
      const auto parts =
          OpCall{"Split", {Tensor::Scalar<int32_t>(axis), whole}, {{"num_split", 4}}}.Run();
      for (int i = 0; i < 4; ++i) {
        const int64_t size = whole.dim(axis) / 4;
        ExpectPart(parts[i], whole, axis, i * size, size);
      }
      EXPECT_EQ(parts[1].SharesBufferWith(whole), axis == 0);  // rows of 64 bytes and more
    }
  }
  const Tensor one = Sample(DType::kFloat, {3});
  EXPECT_TRUE((OpCall{"Split", {Tensor::Scalar<int32_t>(-1), one}, {{"num_split", 1}}}
                   .Run1()
                   .SharesBufferWith(one)));
}

TEST(Split, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {4, 5});
  const auto scalar = [](int32_t i) { return Tensor::Scalar<int32_t>(i); };
  OpCall{"Split", {scalar(1), x}, {{"num_split", 2}}}.ExpectError(
      "Number of ways to split should evenly divide the split dimension, but got split_dim 1 "
      "(size = 5) and num_split 2");
  OpCall{"Split", {scalar(2), x}, {{"num_split", 2}}}.ExpectError("-2 <= split_dim < 2");
  OpCall{"Split", {Pairs({0, 0}), x}, {{"num_split", 2}}}.ExpectError("split_dim must be a scalar");
  const auto expect = [&](std::vector<int64_t> sizes, int axis, const char* words) {
    OpCall{"SplitV", {x, Longs(sizes), scalar(axis)}, {{"num_split", 2}}}.ExpectError(words);
  };
  expect({2, 4}, 1, "Got: 6, expected 5");
  expect({-1, 6}, 1, "Got: 6, expected 5");
  expect({-1, -1}, 1, "at most one of them -1");
  expect({-7, 12}, 1, "element 0 is -7");
  expect({INT64_MAX, INT64_MAX}, 1, "more than an int64");
  expect({2, 3}, -3, "split_dim");
  OpCall{"SplitV", {x, Longs({5}), scalar(1)}, {{"num_split", 2}}}.ExpectError(
      "size_splits must have 2 elements");
}

TEST(Concat, SharesTheOnlyPartThatHoldsAnything) {
  const Tensor x = Sample(DType::kFloat, {4, 5});
  const std::vector<Tensor> parts = {Tensor(DType::kFloat, {0, 5}), x,
                                     Tensor(DType::kFloat, {0, 5})};
  const Tensor y = OpCall{"ConcatV2", {parts, Tensor::Scalar<int64_t>(0)}}.Run1();
  EXPECT_TRUE(y.SharesBufferWith(x));
}

TEST(Concat, Mistakes) {
  const auto expect = [](std::vector<Shape> shapes, int axis, const char* words) {
    std::vector<Tensor> parts;
    for (const Shape& shape : shapes) parts.push_back(Sample(DType::kFloat, shape));
    OpCall{"Concat", {Tensor::Scalar<int32_t>(axis), parts}}.ExpectError(words);
    OpCall{"ConcatV2", {parts, Tensor::Scalar<int32_t>(axis)}}.ExpectError(words);
  };
  expect({{2, 3}, {2, 4}}, 0,
         "ConcatOp : Dimension 1 in both shapes must be equal: shape[0] = [2,3] vs. shape[1] = "
         "[2,4]");
  expect({{2, 3}, {2}}, 0,
         "ConcatOp : Ranks of all input tensors should match: shape[0] = [2,3] vs. shape[1] = [2]");
  expect({{2, 3}, {2, 3}}, 2,
         "ConcatOp : Expected concatenating dimensions in the range [-2, 2), but got 2");
  expect({{}, {}}, 0, "range [0, 0), but got 0");
}

TEST(ConcatOffset, SaysWhereEachPartBegins) {
  const std::vector<Tensor> shapes = {Ints({2, 2, 7}), Ints({2, 3, 7}), Ints({2, 5, 7})};
  for (const int axis : {1, -2}) {
    const auto offsets = OpCall{"ConcatOffset", {Tensor::Scalar<int32_t>(axis), shapes}}.Run();
    EXPECT_TRUE(SameTensor(offsets[0], Ints({0, 0, 0})));
    EXPECT_TRUE(SameTensor(offsets[1], Ints({0, 2, 0})));
    EXPECT_TRUE(SameTensor(offsets[2], Ints({0, 5, 0})));
  }
  const std::vector<Tensor> long_ones(2, Tensor::Vector<int64_t>({2, int64_t{1} << 40}));
  const auto offsets = OpCall{"ConcatOffset", {Tensor::Scalar<int32_t>(1), long_ones}}.Run();
  EXPECT_TRUE(SameTensor(offsets[1], Tensor::Vector<int64_t>({0, int64_t{1} << 40})));
  const auto expect = [](std::vector<Tensor> shapes, int axis, const char* words) {
    OpCall{"ConcatOffset", {Tensor::Scalar<int32_t>(axis), shapes}}.ExpectError(words);
  };
  expect({Ints({2, 2}), Ints({3, 2})}, 1, "All dimensions except 1 must match. Input 1");
  expect({Ints({2, 2}), Ints({2})}, 1, "shape[1] must have 2 elements");
  expect({Ints({2, 2}), Ints({2, 2})}, 2, "concat_dim = 2 is not in [-2, 2)");
}

TEST(Pack, AlongEveryAxisAndBackAgain) {
  for (const Shape& each :
       {Shape(), Shape({3}), Shape({16, 4}), Shape({2, 0, 3}), Shape({50, 70})}) {
    for (const DType dtype : kMovedTypes) {
      for (int axis = -each.rank() - 1; axis <= each.rank(); ++axis) {
        const int at = axis < 0 ? axis + each.rank() + 1 : axis;
        const std::vector<Tensor> parts = {Sample(dtype, each), Sample(dtype, each, 7),
                                           Sample(dtype, each, 100)};
        const Tensor packed = OpCall{"Pack", {parts}, {{"axis", axis}}}.Run1();
        Shape shape = each;
        shape.InsertDim(at, 3);
        ASSERT_EQ(packed.shape(), shape);
        const auto unpacked = OpCall{"Unpack", {packed}, {{"axis", axis}, {"num", 3}}}.Run();
        for (int i = 0; i < 3; ++i) {
          EXPECT_TRUE(SameTensor(unpacked[i], parts[i]));
          ExpectMoved(parts[i], each, packed, [&](const Dims& place) {
            Dims from = place;
            from.insert(from.begin() + at, i);
            return from;
          });
        }
      }
    }
  }
}

TEST(ParallelConcat, JoinsRows) {
  const auto join = [](std::vector<Tensor> values, std::vector<int64_t> shape) {
    return OpCall{"ParallelConcat", {std::move(values)}, {{"shape", PartialShape(shape)}}};
  };
  for (const DType dtype : kMovedTypes) {
    const Tensor whole = Sample(dtype, {2, 3});
    EXPECT_TRUE(SameTensor(join({whole.Slice(0, 1), whole.Slice(1, 2)}, {2, 3}).Run1(), whole));
  }
  const Tensor row = Sample(DType::kFloat, {1, 2});
  join({row, row}, {3, 2}).ExpectError("shape must have 2 rows, one for each of values");
  join({row, row}, {2, 3}).ExpectError("values[0] must have shape [1,3], has [1,2]");
  join({row, Sample(DType::kFloat, {2})}, {2, 2}).ExpectError("values[1]");
  join({row}, {1, -1}).ExpectError("must be fully defined");
}

TEST(Pack, OneIsShared) {
  const Tensor x = Sample(DType::kFloat, {2, 3});
  const Tensor y = OpCall{"Pack", {std::vector<Tensor>{x}}, {{"axis", 1}}}.Run1();
  EXPECT_EQ(y.shape(), Shape({2, 1, 3}));
  EXPECT_TRUE(y.SharesBufferWith(x));
}

TEST(Unpack, SharesAlignedRows) {
  const Tensor x = Sample(DType::kFloat, {3, 16});
  for (const Tensor& row : OpCall{"Unpack", {x}, {{"num", 3}}}.Run()) {
    EXPECT_TRUE(row.SharesBufferWith(x));
  }
}

TEST(Pack, Mistakes) {
  const std::vector<Tensor> parts = {Sample(DType::kFloat, {2}), Sample(DType::kFloat, {3})};
  OpCall{"Pack", {parts}}.ExpectError(
      "Shapes of all inputs must match: values[0].shape = [2] != values[1].shape = [3]");
  const std::vector<Tensor> same = {Sample(DType::kFloat, {2}), Sample(DType::kFloat, {2})};
  OpCall{"Pack", {same}, {{"axis", 2}}}.ExpectError("axis = 2 not in [-2, 2)");
  OpCall{"Unpack", {same[0]}, {{"num", 3}}}.ExpectError(
      "Input shape axis 0 must equal 3, got shape [2]");
  OpCall{"Unpack", {same[0]}, {{"num", 2}, {"axis", -2}}}.ExpectError("axis = -2 not in [-1, 1)");
  OpCall{"Unpack", {Tensor::Scalar<float>(1)}, {{"num", 1}}}.ExpectError("axis = 0 not in [0, 0)");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests ops that read or write slices by index: Gather, GatherV2, GatherNd, ScatterNd,
// DynamicPartition, DynamicStitch.
#include <gtest/gtest.h>

#include <complex>

#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

// Returns indices below `limit` in a scrambled order.
template <class Index>
Tensor Indices(const Shape& shape, int64_t limit) {
  Tensor t(kDTypeOf<Index>, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.mutable_data<Index>()[i] = static_cast<Index>(i * 7919 % 104729 % limit);
  }
  return t;
}

int64_t At(const Tensor& indices, const Dims& place) {
  const int64_t i = FlatIndex(indices.shape(), place);
  return indices.dtype() == DType::kInt32 ? indices.data<int32_t>()[i] : indices.data<int64_t>()[i];
}

struct GatherCase {
  Shape params, indices;
  int axis, batch_dims;
};

const GatherCase kGatherCases[] = {
    {{9}, {4}, 0, 0},
    {{9, 5}, {4}, 0, 0},
    {{9, 5}, {2, 3}, 0, 0},
    {{9, 5}, {}, 0, 0},
    {{9, 5}, {0}, 0, 0},
    {{9, 0}, {3}, 0, 0},
    {{9, 5}, {3}, 1, 0},
    {{9, 5}, {3}, -1, 0},
    {{4, 9, 5}, {2, 3}, 1, 0},
    {{4, 9, 5}, {4, 3}, 1, 1},
    {{4, 9, 5}, {4, 3}, 2, 1},
    {{4, 3, 5}, {4, 3, 2}, 2, 2},
    {{4, 3, 5}, {4, 3}, 2, -1},
    {{4, 3, 5}, {4, 3, 2}, 2, -1},
    {{0, 5}, {0}, 0, 0},
    {{500, 64}, {3000}, 0, 0},
    {{500, 16}, {40, 70}, 0, 0},
    {{50000}, {70000}, 0, 0},
    {{40, 500, 3}, {40, 800}, 1, 1},
};

template <class Index>
void CheckGather(const GatherCase& c, DType dtype) {
  const int axis = c.axis < 0 ? c.axis + c.params.rank() : c.axis;
  const int batch = c.batch_dims < 0 ? c.batch_dims + c.indices.rank() : c.batch_dims;
  const Tensor params = Sample(dtype, c.params);
  const Tensor indices = Indices<Index>(c.indices, std::max<int64_t>(1, c.params.dim(axis)));
  const Tensor y = OpCall{
      "GatherV2",
      {params, indices, Tensor::Scalar<int32_t>(c.axis)},
      {{"batch_dims",
        c.batch_dims}}}.Run1();
  Dims dims(c.params.dims().begin(), c.params.dims().begin() + axis);
  dims.insert(dims.end(), c.indices.dims().begin() + batch, c.indices.dims().end());
  dims.insert(dims.end(), c.params.dims().begin() + axis + 1, c.params.dims().end());
  const int chosen = c.indices.rank() - batch;  // dimensions of y that come from indices
  ExpectMoved(y, Shape(dims), params, [&](const Dims& place) {
    Dims at(place.begin(), place.begin() + batch);
    at.insert(at.end(), place.begin() + axis, place.begin() + axis + chosen);
    Dims from(place.begin(), place.begin() + axis);
    from.push_back(At(indices, at));
    from.insert(from.end(), place.begin() + axis + chosen, place.end());
    return from;
  });
  if (c.axis == 0 && batch == 0) {
    EXPECT_TRUE(SameTensor(OpCall{"Gather", {params, indices}}.Run1(), y));
  }
}

TEST(Gather, EveryShapeAndType) {
  for (const GatherCase& c : kGatherCases) {
    for (const DType dtype : kMovedTypes) {
      CheckGather<int32_t>(c, dtype);
      CheckGather<int64_t>(c, dtype);
    }
  }
}

TEST(Gather, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {5, 2});
  const auto scalar = [](int32_t i) { return Tensor::Scalar<int32_t>(i); };
  const Tensor bad = Tensor::Of<int32_t>({2, 3}, {0, 1, 2, 3, 4, 7});
  OpCall{"Gather", {x, bad}}.ExpectError("indices[1,2] = 7 is not in [0, 5)");
  OpCall{"GatherV2", {x, bad, scalar(0)}}.ExpectError("indices[1,2] = 7 is not in [0, 5)");
  OpCall{"GatherV2", {x, Longs({1, -1}), scalar(1)}}.ExpectError(
      "indices[1] = -1 is not in [0, 2)");
  OpCall{"Gather", {x, scalar(5)}}.ExpectError("indices = 5 is not in [0, 5)");
  OpCall{"Gather", {x, Longs({int64_t{1} << 32})}}.ExpectError("indices[0] = 4294967296 is not in");
  OpCall{"Gather", {Sample(DType::kFloat, {0, 2}), Ints({0})}}.ExpectError(
      "indices[0] = 0 is not in [0, 0)");
  OpCall{"Gather", {Sample(DType::kFloat, {}), Ints({0})}}.ExpectError(
      "params must be at least 1 dimensional");
  OpCall{"GatherV2", {x, Ints({0}), scalar(2)}}.ExpectError("axis = 2 is not in [-2, 2)");
  OpCall{"GatherV2", {x, Ints({0}), scalar(1)}, {{"batch_dims", 1}}}.ExpectError(
      "params.shape[0]: 5 should be equal to indices.shape[0]: 1");
  OpCall{"GatherV2", {x, Ints({0}), scalar(0)}, {{"batch_dims", 1}}}.ExpectError(
      "batch_dims (1) must be less than or equal to axis (0)");
  OpCall{"GatherV2", {x, Ints({0}), scalar(0)}, {{"batch_dims", 2}}}.ExpectError(
      "batch_dims = 2 is not in [-1, 1]");
}

struct NdCase {
  Shape params, lists;  // indices: lists + [depth]
  int depth;
};

const NdCase kNdCases[] = {
    {{5}, {3}, 1},          {{5, 4}, {3}, 1},      {{5, 4}, {3}, 2},       {{5, 4, 3}, {2, 7}, 2},
    {{5, 4, 3}, {2, 7}, 3}, {{5, 4}, {}, 2},       {{5, 4}, {3}, 0},       {{5, 4}, {0}, 1},
    {{5, 0}, {3}, 1},       {{100, 80}, {900}, 1}, {{100, 80}, {9000}, 2},
};

// Returns index tuples, row-major, that lie within a tensor of shape `params`.
Tensor Tuples(const NdCase& c, bool distinct = false) {
  Shape shape = c.lists;
  shape.AddDim(c.depth);
  Tensor t(DType::kInt64, shape);
  for (int64_t i = 0; i < c.lists.num_elements(); ++i) {
    int64_t number = distinct ? i : i * 7919;
    for (int d = c.depth - 1; d >= 0; --d) {
      t.mutable_data<int64_t>()[i * c.depth + d] = number % c.params.dim(d);
      number /= c.params.dim(d);
    }
  }
  return t;
}

// Returns the position in a tensor of shape `params` that corresponds to position `place` in the
// list of slices.
Dims Target(const NdCase& c, const Tensor& tuples, const Dims& place) {
  Dims at(place.begin(), place.begin() + c.lists.rank());
  at.push_back(0);
  Dims target;
  for (int d = 0; d < c.depth; ++d) {
    at.back() = d;
    target.push_back(At(tuples, at));
  }
  target.insert(target.end(), place.begin() + c.lists.rank(), place.end());
  return target;
}

Shape ListShape(const NdCase& c) {
  Shape shape = c.lists;
  for (int d = c.depth; d < c.params.rank(); ++d) shape.AddDim(c.params.dim(d));
  return shape;
}

TEST(GatherNd, EveryShapeAndType) {
  for (const NdCase& c : kNdCases) {
    const Tensor tuples = Tuples(c);
    for (const DType dtype : kMovedTypes) {
      const Tensor params = Sample(dtype, c.params);
      ExpectMoved(OpCall{"GatherNd", {params, tuples}}.Run1(), ListShape(c), params,
                  [&](const Dims& place) { return Target(c, tuples, place); });
    }
  }
}

TEST(ScatterNd, AddsUp) {
  for (const NdCase& c : kNdCases) {
    const Tensor tuples = Tuples(c);
    Tensor updates(DType::kDouble, ListShape(c)), expected(DType::kDouble, c.params);
    for (int64_t i = 0; i < updates.num_elements(); ++i) {
      updates.mutable_data<double>()[i] = 1 + i % 1000;
    }
    for (double& sum : expected.mutable_flat<double>()) sum = 0;
    ForEachPlace(updates.shape(), [&](const Dims& place) {
      expected.mutable_data<double>()[FlatIndex(c.params, Target(c, tuples, place))] +=
          updates.data<double>()[FlatIndex(updates.shape(), place)];
    });
    std::vector<int64_t> shape(c.params.dims().begin(), c.params.dims().end());
    EXPECT_TRUE(SameTensor(OpCall{"ScatterNd", {tuples, updates, Longs(shape)}}.Run1(), expected));
  }
}

TEST(ScatterNd, OtherTypes) {
  const Tensor indices = Tensor::Of<int32_t>({3, 1}, {1, 0, 1});
  const auto scatter = [&](const Tensor& updates) {
    return OpCall{"ScatterNd", {indices, updates, Ints({3})}}.Run1();
  };
  EXPECT_TRUE(SameTensor(scatter(Tensor::Vector<std::string>({"a", "b", "c"})),
                         Tensor::Vector<std::string>({"b", "ac", ""})));
  EXPECT_TRUE(SameTensor(scatter(Tensor::Of<bool>({3}, {true, false, false})),
                         Tensor::Of<bool>({3}, {false, true, false})));
  EXPECT_TRUE(SameTensor(scatter(Tensor::Vector<uint8_t>({200, 1, 100})),
                         Tensor::Vector<uint8_t>({1, 44, 0})));
  EXPECT_TRUE(SameTensor(scatter(Tensor::Vector<bfloat16>({bfloat16(1), bfloat16(2), bfloat16(3)})),
                         Tensor::Vector<bfloat16>({bfloat16(2), bfloat16(4), bfloat16(0)})));
}

// The expected values are TensorFlow's.
TEST(GatherNd, BadIndicesAreIgnoredIfAsked) {
  const Attrs ignore = {{"bad_indices_policy", "IGNORE"}};
  const Tensor rows = Tensor::Of<int32_t>({4, 1}, {-1, 1, 2, 0});
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(SameTensor(OpCall{"GatherNd", {x, rows}, ignore}.Run1(),
                         Tensor::Of<float>({4, 2}, {0, 0, 3, 4, 0, 0, 1, 2})));
  OpCall{"GatherNd", {Tensor(DType::kFloat, {0, 2}), rows}, ignore}.ExpectError("params is empty");
  const Tensor updates = Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(SameTensor(OpCall{"ScatterNd", {rows, updates, Ints({2, 2})}, ignore}.Run1(),
                         Tensor::Of<float>({2, 2}, {7, 8, 3, 4})));
  OpCall{"ScatterNd", {rows, updates, Ints({0, 2})}, ignore}.ExpectError("empty output");
  OpCall{"GatherNd", {x, rows}, {{"bad_indices_policy", "ERROR"}}}.ExpectError(
      "indices[0] = [-1] does not index into shape [2,2]");
  OpCall{"GatherNd", {x, rows}, {{"bad_indices_policy", "SOME"}}}.ExpectError(
      "bad_indices_policy must be ERROR, IGNORE or DEFAULT, is 'SOME'");
}

TEST(GatherNd, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {2, 3});
  const Tensor outside = Tensor::Of<int32_t>({1, 2, 2}, {0, 2, 1, 3});
  OpCall{"GatherNd", {x, outside}}.ExpectError(
      "indices[0,1] = [1, 3] does not index into shape [2,3]");
  OpCall{"GatherNd", {x, Tensor::Of<int32_t>({1, 3}, {0, 0, 0})}}.ExpectError("saw: 3 vs. 2");
  OpCall{"GatherNd", {x, Tensor::Scalar<int32_t>(0)}}.ExpectError(
      "indices must be at least a vector");
  const auto scatter = [&](const Tensor& updates, std::vector<int32_t> shape, const char* words) {
    OpCall{"ScatterNd", {Tensor::Of<int32_t>({2, 1}, {0, 5}), updates, Ints(shape)}}.ExpectError(
        words);
  };
  const Tensor two = Sample(DType::kFloat, {2});
  scatter(two, {5}, "indices[1] = [5] does not index into shape [5]");
  scatter(two, {0}, "Indices and updates specified for empty output shape");
  scatter(two, {6, 2}, "updates must have shape");
  scatter(two, {}, "saw: 1 vs. 0");
  scatter(two, {-1}, "negative dimension");
}

TEST(DynamicPartition, DealsOut) {
  struct Case {
    Shape data, partitions;
    int parts;
  };
  for (const Case& c : {Case{{6}, {6}, 3}, Case{{6, 4}, {6}, 4}, Case{{3, 5, 2}, {3, 5}, 2},
                        Case{{4, 0}, {4}, 2}, Case{{0, 3}, {0}, 2}, Case{{5}, {}, 2}}) {
    for (const DType dtype : kMovedTypes) {
      const Tensor data = Sample(dtype, c.data);
      const Tensor partitions = Indices<int32_t>(c.partitions, c.parts);
      const auto outputs =
          OpCall{"DynamicPartition", {data, partitions}, {{"num_partitions", c.parts}}}.Run();
      for (int p = 0; p < c.parts; ++p) {
        std::vector<Dims> members;
        ForEachPlace(c.partitions, [&](const Dims& place) {
          if (At(partitions, place) == p) members.push_back(place);
        });
        Shape shape({static_cast<int64_t>(members.size())});
        for (int d = c.partitions.rank(); d < c.data.rank(); ++d) shape.AddDim(c.data.dim(d));
        ExpectMoved(outputs[p], shape, data, [&](const Dims& place) {
          Dims from = members[place[0]];
          from.insert(from.end(), place.begin() + 1, place.end());
          return from;
        });
      }
    }
  }
}

TEST(DynamicPartition, Mistakes) {
  const Tensor data = Sample(DType::kFloat, {2, 3});
  OpCall{"DynamicPartition", {data, Ints({0, 2})}, {{"num_partitions", 2}}}.ExpectError(
      "partitions[1] = 2 is not in [0, 2)");
  OpCall{"DynamicPartition", {data, Ints({0, 1, 1})}, {{"num_partitions", 2}}}.ExpectError(
      "data.shape must start with partitions.shape, got data.shape = [2,3], partitions.shape = "
      "[3]");
}

TEST(DynamicStitch, PutsTogether) {
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    for (const DType dtype : kMovedTypes) {
      const Tensor a = Sample(dtype, {3, 2}), b = Sample(dtype, {1, 2, 2}, 50),
                   c = Sample(dtype, {2}, 90);
      const std::vector<Tensor> indices = {Ints({4, 0, 6}), Tensor::Of<int32_t>({1, 2}, {1, 0}),
                                           Tensor::Scalar<int32_t>(3)};
      const Tensor merged = OpCall{op, {indices, std::vector<Tensor>{a, b, c}}}.Run1();
      const Tensor sources[7] = {b, b, Tensor(), c, a, Tensor(), a};
      const int row[7] = {1, 0, 0, 0, 0, 0, 2};
      ASSERT_EQ(merged.shape(), Shape({7, 2}));
      for (int i = 0; i < 7; ++i) {
        const Tensor& source = sources[i].valid() ? sources[i] : a;
        ExpectMoved(merged.Slice(i, i + 1), {1, 2}, source.Reshaped({source.num_elements()}),
                    [&](const Dims& place) -> std::optional<Dims> {
                      if (!sources[i].valid()) return std::nullopt;
                      return Dims{row[i] * 2 + place[1]};
                    });
      }
    }
  }
  const std::vector<Tensor> none = {Ints({})}, nothing = {Sample(DType::kFloat, {0, 3})};
  EXPECT_EQ((OpCall{"DynamicStitch", {none, nothing}}.Run1().shape()), Shape({0, 3}));
}

TEST(DynamicStitch, Mistakes) {
  const auto expect = [](std::vector<Tensor> indices, std::vector<Shape> shapes,
                         const char* words) {
    std::vector<Tensor> data;
    for (const Shape& shape : shapes) data.push_back(Sample(DType::kFloat, shape));
    OpCall{"DynamicStitch", {indices, data}}.ExpectError(words);
  };
  expect({Ints({0, -1})}, {{2, 3}}, "indices[0][1] = -1 is not in");
  expect({Ints({0, 1})}, {{3, 3}},
         "data[0].shape = [3,3] does not start with indices[0].shape = [2]");
  expect({Ints({0}), Ints({1})}, {{1, 3}, {1, 4}}, "the slices of data[1] have shape [4]");
}

}  // namespace
}  // namespace penstock

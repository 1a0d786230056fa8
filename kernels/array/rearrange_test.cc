// SPDX-License-Identifier: Apache-2.0
//
// Tests Reverse, ReverseV2, ReverseSequence, the space and batch ops, and the diagonal ops.
#include <gtest/gtest.h>

#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

TEST(Reverse, WalksBackwards) {
  struct Case {
    Shape shape;
    std::vector<bool> flags;
  };
  const Case cases[] = {{{5}, {true}},
                        {{3, 4}, {true, false}},
                        {{3, 4}, {false, true}},
                        {{3, 4}, {true, true}},
                        {{3, 4}, {false, false}},
                        {{2, 3, 4}, {true, false, true}},
                        {{0, 3}, {true, true}},
                        {{}, {}},
                        {{64, 100, 3}, {false, true, false}}};
  for (const Case& c : cases) {
    std::vector<int32_t> axes;
    Tensor flags(DType::kBool, {c.shape.rank()});
    for (int i = 0; i < c.shape.rank(); ++i) {
      flags.mutable_data<bool>()[i] = c.flags[i];
      if (c.flags[i]) axes.push_back(i % 2 == 0 ? i : i - c.shape.rank());
    }
    for (const DType dtype : kMovedTypes) {
      const Tensor x = Sample(dtype, c.shape);
      const auto source = [&](const Dims& place) {
        Dims from = place;
        for (size_t i = 0; i < from.size(); ++i) {
          if (c.flags[i]) from[i] = c.shape.dim(i) - 1 - from[i];
        }
        return from;
      };
      ExpectMoved(OpCall{"Reverse", {x, flags}}.Run1(), c.shape, x, source);
      ExpectMoved(OpCall{"ReverseV2", {x, Ints(axes)}}.Run1(), c.shape, x, source);
    }
  }
  const Tensor x = Sample(DType::kFloat, {2, 3});
  OpCall{"Reverse", {x, Tensor::Of<bool>({1}, {true})}}.ExpectError("'dims' must be a vector");
  OpCall{"ReverseV2", {x, Ints({2})}}.ExpectError("axis = 2 is not in [-2, 2)");
  OpCall{"ReverseV2", {x, Ints({1, -1})}}.ExpectError("axis 1 specified more than once.");
}

TEST(ReverseSequence, TurnsTheFirstPart) {
  struct Case {
    Shape shape;
    int seq_dim, batch_dim;
    std::vector<int64_t> lengths;
  };
  const Case cases[] = {{{3, 5}, 1, 0, {0, 3, 5}},    {{5, 3}, 0, 1, {1, 4, 5}},
                        {{2, 4, 3}, 1, 0, {2, 4}},    {{2, 4, 3}, 2, 1, {3, 0, 1, 2}},
                        {{4, 2, 3}, 0, 2, {4, 2, 3}}, {{0, 5}, 1, 0, {}}};
  for (const Case& c : cases) {
    const Attrs attrs = {{"seq_dim", c.seq_dim}, {"batch_dim", c.batch_dim}};
    for (const DType dtype : kMovedTypes) {
      const Tensor x = Sample(dtype, c.shape);
      ExpectMoved(OpCall{"ReverseSequence", {x, Longs(c.lengths)}, attrs}.Run1(), c.shape, x,
                  [&](const Dims& place) {
                    Dims from = place;
                    const int64_t length = c.lengths[place[c.batch_dim]];
                    if (place[c.seq_dim] < length) from[c.seq_dim] = length - 1 - place[c.seq_dim];
                    return from;
                  });
    }
  }
  const Tensor x = Sample(DType::kFloat, {2, 3});
  const auto expect = [&](std::vector<int32_t> lengths, int seq, int batch, const char* words) {
    OpCall{"ReverseSequence", {x, Ints(lengths)}, {{"seq_dim", seq}, {"batch_dim", batch}}}
        .ExpectError(words);
  };
  expect({1, 4}, 1, 0, "seq_lens(1) > input.dims(1): 4 is not in [0, 3]");
  expect({1, -1}, 1, 0, "seq_lens(1) < 0: -1 is not in [0, 3]");
  expect({1, 1}, 1, 1, "batch_dim == seq_dim == 1");
  expect({1}, 1, 0, "seq_lengths must have 2 elements");
  expect({1, 1}, 2, 0, "seq_dim = 2 is not in [-2, 2)");
}

struct BlockCase {
  Shape space;
  std::vector<int32_t> block, pads;
};

const BlockCase kBlockCases[] = {
    {{1, 2, 2, 1}, {2, 2}, {0, 0, 0, 0}},
    {{2, 4, 6, 3}, {2, 3}, {0, 0, 0, 0}},
    {{2, 3, 5, 3}, {2, 3}, {1, 0, 0, 1}},
    {{1, 1, 1, 2}, {3, 2}, {4, 4, 2, 3}},
    {{3, 4}, {2}, {0, 0}},
    {{3, 5, 2}, {4}, {2, 1}},
    {{2, 3, 4, 5, 2}, {3, 1, 5}, {0, 0, 1, 1, 0, 0}},
    {{2, 3}, {}, {}},
    {{0, 4, 2}, {2}, {0, 0}},
};

Shape BatchShape(const BlockCase& c) {
  Dims dims(c.space.dims().begin(), c.space.dims().end());
  for (size_t i = 0; i < c.block.size(); ++i) {
    dims[0] *= c.block[i];
    dims[i + 1] = (dims[i + 1] + c.pads[2 * i] + c.pads[2 * i + 1]) / c.block[i];
  }
  return Shape(dims);
}

// Returns the position, before SpaceToBatchND, of the element at `place` in the result; nullopt if
// that element is padding.
std::optional<Dims> InSpace(const BlockCase& c, const Dims& place) {
  Dims from = place;
  int64_t offset = place[0] / c.space.dim(0);
  from[0] = place[0] % c.space.dim(0);
  for (int i = static_cast<int>(c.block.size()) - 1; i >= 0; --i) {
    from[i + 1] = place[i + 1] * c.block[i] + offset % c.block[i] - c.pads[2 * i];
    offset /= c.block[i];
    if (from[i + 1] < 0 || from[i + 1] >= c.space.dim(i + 1)) return std::nullopt;
  }
  return from;
}

TEST(SpaceToBatch, ThereAndBack) {
  for (const BlockCase& c : kBlockCases) {
    for (const DType dtype : kMovedTypes) {
      const Tensor space = Sample(dtype, c.space);
      const Tensor batch = OpCall{"SpaceToBatchND", {space, Ints(c.block), Pairs(c.pads)}}.Run1();
      ExpectMoved(batch, BatchShape(c), space,
                  [&](const Dims& place) { return InSpace(c, place); });
      EXPECT_TRUE(SameTensor(OpCall{"BatchToSpaceND", {batch, Ints(c.block), Pairs(c.pads)}}.Run1(),
                             space));
    }
  }
  const BlockCase square = {{2, 3, 5, 3}, {2, 2}, {1, 0, 0, 1}};
  const Tensor space = Sample(DType::kFloat, square.space);
  const Tensor batch =
      OpCall{"SpaceToBatch", {space, Pairs(square.pads)}, {{"block_size", 2}}}.Run1();
  ExpectMoved(batch, BatchShape(square), space,
              [&](const Dims& place) { return InSpace(square, place); });
  EXPECT_TRUE(SameTensor(
      OpCall{"BatchToSpace", {batch, Pairs(square.pads)}, {{"block_size", 2}}}.Run1(), space));
}

TEST(SpaceToBatch, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {4, 3, 2});
  const auto expect = [&](const char* op, std::vector<int32_t> block, std::vector<int32_t> pads,
                          const char* words) {
    OpCall{op, {x, Ints(block), Pairs(pads)}}.ExpectError(words);
  };
  expect("SpaceToBatchND", {2}, {0, 0}, "padded_shape[0]=3 is not divisible by block_shape[0]=2");
  expect("SpaceToBatchND", {0}, {0, 0}, "block_shape must be positive, got 0");
  expect("SpaceToBatchND", {3}, {0, -3}, "paddings must be non-negative, got -3");
  expect("SpaceToBatchND", {1, 1, 1}, {0, 0, 0, 0, 0, 0}, "input rank should be >= 4 instead of 3");
  expect("SpaceToBatchND", {3}, {0, 0, 0, 0},
         "paddings must be a matrix with 2 columns and 1 rows");
  expect("BatchToSpaceND", {3}, {0, 0},
         "Input batch dimension (4) is not divisible by product of block sizes (3)");
  expect("BatchToSpaceND", {2}, {4, 3}, "must be non-negative");
  expect("BatchToSpaceND", {2}, {-1, 0}, "crops must be non-negative, got -1");
}

TEST(SpaceToDepth, ThereAndBack) {
  struct Case {
    Shape space;
    int block;
    bool channels_last;
  };
  for (const Case& c :
       {Case{{1, 2, 2, 1}, 2, true}, Case{{2, 4, 6, 3}, 2, true}, Case{{2, 6, 9, 5}, 3, true},
        Case{{2, 3, 4, 6}, 2, false}, Case{{1, 1, 6, 3}, 3, false}, Case{{0, 4, 4, 3}, 2, true}}) {
    const int h = c.channels_last ? 1 : 2, w = h + 1, ch = c.channels_last ? 3 : 1;
    const Attrs attrs = {{"block_size", c.block},
                         {"data_format", c.channels_last ? "NHWC" : "NCHW"}};
    Shape depth = c.space;
    depth.set_dim(h, c.space.dim(h) / c.block);
    depth.set_dim(w, c.space.dim(w) / c.block);
    depth.set_dim(ch, c.space.dim(ch) * c.block * c.block);
    for (const DType dtype : kMovedTypes) {
      const Tensor x = Sample(dtype, c.space);
      const Tensor y = OpCall{"SpaceToDepth", {x}, attrs}.Run1();
      ExpectMoved(y, depth, x, [&](const Dims& place) {
        Dims from = place;
        const int64_t channels = c.space.dim(ch), cell = place[ch] / channels;
        from[h] = place[h] * c.block + cell / c.block;
        from[w] = place[w] * c.block + cell % c.block;
        from[ch] = place[ch] % channels;
        return from;
      });
      EXPECT_TRUE(SameTensor(OpCall{"DepthToSpace", {y}, attrs}.Run1(), x));
    }
  }
  const Tensor x = Sample(DType::kFloat, {1, 3, 4, 3});
  OpCall{"SpaceToDepth", {x}, {{"block_size", 2}}}.ExpectError(
      "dimension 1 of the input, 3, should be divisible by 2");
  OpCall{"DepthToSpace", {x}, {{"block_size", 2}}}.ExpectError(
      "dimension 3 of the input, 3, should be divisible by 4");
  OpCall{"DepthToSpace", {Ints({1})}, {{"block_size", 2}}}.ExpectError("Input rank should be: 4");
  OpCall{"SpaceToDepth", {x}, {{"block_size", 2}, {"data_format", "NCHW_VECT_C"}}}.ExpectError(
      "NCHW_VECT_C is not supported");
}

TEST(Diag, ThereAndBack) {
  for (const Shape& half : {Shape({4}), Shape({2, 3}), Shape({2, 1, 3}), Shape({0})}) {
    for (const DType dtype : {DType::kFloat, DType::kInt64, DType::kComplex128, DType::kInt8}) {
      const Tensor x = Sample(dtype, half);
      Shape whole = half;
      for (const int64_t dim : half.dims()) whole.AddDim(dim);
      const Tensor y = OpCall{"Diag", {x}}.Run1();
      ExpectMoved(y, whole, x, [&](const Dims& place) -> std::optional<Dims> {
        const Dims first(place.begin(), place.begin() + half.rank());
        if (first != Dims(place.begin() + half.rank(), place.end())) return std::nullopt;
        return first;
      });
      EXPECT_TRUE(SameTensor(OpCall{"DiagPart", {y}}.Run1(), x));
    }
  }
  OpCall{"Diag", {Tensor::Scalar<float>(1)}}.ExpectError("at least rank 1");
  OpCall{"DiagPart", {Sample(DType::kFloat, {3})}}.ExpectError("rank of the tensor should be even");
  OpCall{"DiagPart", {Sample(DType::kFloat, {3, 2})}}.ExpectError("Invalid shape [3,2]");
}

TEST(MatrixDiag, TakesMakesAndSets) {
  for (const std::string prefix : {"", "Batch"}) {
    for (const Shape& matrices :
         {Shape({3, 3}), Shape({2, 3, 4}), Shape({2, 2, 4, 3}), Shape({0, 2})}) {
      const int rank = matrices.rank();
      Shape diagonal = matrices;
      diagonal.RemoveDim(rank - 1);
      diagonal.set_dim(rank - 2, std::min(matrices.dim(rank - 2), matrices.dim(rank - 1)));
      Shape square = diagonal;
      square.AddDim(diagonal.dim(rank - 2));
      for (const DType dtype : kMovedTypes) {
        const Tensor x = Sample(dtype, matrices), d = Sample(dtype, diagonal, 500);
        const auto on_diagonal = [&](const Dims& place) -> std::optional<Dims> {
          if (place[rank - 1] != place[rank - 2]) return std::nullopt;
          return Dims(place.begin(), place.end() - 1);
        };
        ExpectMoved(OpCall{prefix + "MatrixDiagPart", {x}}.Run1(), diagonal, x,
                    [](const Dims& place) {
                      Dims from = place;
                      from.push_back(place.back());
                      return from;
                    });
        ExpectMoved(OpCall{prefix + "MatrixDiag", {d}}.Run1(), square, d, on_diagonal);
        const Tensor set = OpCall{prefix + "MatrixSetDiag", {x, d}}.Run1();
        ASSERT_EQ(set.shape(), matrices);
        EXPECT_TRUE(SameTensor(OpCall{"MatrixDiagPart", {set}}.Run1(), d));
        EXPECT_TRUE(SameTensor(
            OpCall{"MatrixSetDiag", {set, OpCall{"MatrixDiagPart", {x}}.Run1()}}.Run1(), x));
      }
    }
  }
  OpCall{"MatrixDiag", {Tensor::Scalar<float>(1)}}.ExpectError("at least 1-dim");
  OpCall{"MatrixDiagPart", {Ints({1})}}.ExpectError("input must be at least 2-dim");
  OpCall{"MatrixSetDiag", {Pairs({1, 2, 3, 4}), Ints({1})}}.ExpectError(
      "must have diagonal.shape == [2]");
}

TEST(MatrixBandPart, KeepsABand) {
  const Shape shape({2, 4, 6});
  for (const DType dtype : kMovedTypes) {
    const Tensor x = Sample(dtype, shape);
    for (int64_t lower = -1; lower <= 4; ++lower) {
      for (int64_t upper = -1; upper <= 6; ++upper) {
        const Tensor band =
            OpCall{"MatrixBandPart",
                   {x, Tensor::Scalar<int64_t>(lower), Tensor::Scalar<int64_t>(upper)}}
                .Run1();
        ExpectMoved(band, shape, x, [&](const Dims& place) -> std::optional<Dims> {
          const int64_t below = place[1] - place[2];
          if ((lower >= 0 && below > lower) || (upper >= 0 && -below > upper)) return std::nullopt;
          return place;
        });
      }
    }
  }
  const auto expect = [](const Tensor& x, int32_t lower, int32_t upper, const char* words) {
    OpCall{"MatrixBandPart", {x, Tensor::Scalar<int32_t>(lower), Tensor::Scalar<int32_t>(upper)}}
        .ExpectError(words);
  };
  const Tensor x = Sample(DType::kFloat, {2, 3});
  expect(x, 3, 0, "num_lower must be negative or at most 2, got: 3");
  expect(x, 0, 4, "num_upper must be negative or at most 3, got: 4");
  expect(Ints({1}), 0, 0, "input must be at least 2-dim");
}

}  // namespace
}  // namespace penstock

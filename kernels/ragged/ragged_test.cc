// SPDX-License-Identifier: Apache-2.0
//
// Tests the ragged ops. The expected numbers are those of TensorFlow 2.21.
#include <limits>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT
using Tensors = std::vector<Tensor>;

TEST(Ragged, Range) {
  ExpectOutputs({"RaggedRange", {I({3}, {0, 5, 8}), I({3}, {3, 5, 0}), I({3}, {1, 1, -3})}},
                {L({4}, {0, 3, 3, 6}), I({6}, {0, 1, 2, 8, 5, 2})});
  ExpectOutputs(
      {"RaggedRange", {I({}, {0}), I({2}, {3, 5}), I({}, {2})}, {{"Tsplits", DType::kInt32}}},
      {I({3}, {0, 2, 5}), I({5}, {0, 2, 0, 2, 4})});
  ExpectOutputs({"RaggedRange", {F({2}, {0, 1}), F({2}, {1, 2.5}), F({2}, {.3f, .5})}},
                {L({3}, {0, 4, 7}), F({7}, {0, .3f, .6f, .9f, 1, 1.5, 2})}, 1e-6);
  const int64_t most = std::numeric_limits<int64_t>::max(), least = -most - 1;
  ExpectOutputs({"RaggedRange", {L({}, {least}), L({}, {most}), L({}, {most})}},
                {L({2}, {0, 3}), L({3}, {least, -1, most - 1})});
  const auto expect = [](const Tensor& a, const Tensor& b, const Tensor& c, const char* words) {
    OpCall{"RaggedRange", {a, b, c}}.ExpectError(words);
  };
  expect(I({2}, {0, 1}), I({3}, {1, 2, 3}), I({}, {1}), "must have the same shape");
  expect(I({}, {0}), I({}, {5}), I({}, {0}), "Requires delta != 0");
  expect(L({}, {least}), L({}, {most}), L({}, {1}), "to fit in 64 bits");
}

OpCall Gather(Tensors splits, Tensor values, Tensor indices, int64_t rank) {
  return {"RaggedGather",
          {std::move(splits), std::move(values), std::move(indices)},
          {{"OUTPUT_RAGGED_RANK", rank}}};
}

TEST(Ragged, Gather) {
  const Tensor splits = L({4}, {0, 3, 3, 5}), values = I({5}, {10, 11, 12, 13, 14});
  ExpectOutputs(Gather({splits}, values, I({3}, {2, 0, 2}), 1),
                {L({4}, {0, 2, 5, 7}), I({7}, {13, 14, 10, 11, 12, 13, 14})});
  ExpectOutputs(Gather({splits}, values, I({3, 2}, {2, 0, 1, 2, 0, 0}), 2),
                {L({4}, {0, 2, 4, 6}), L({7}, {0, 2, 5, 5, 7, 10, 13}),
                 I({13}, {13, 14, 10, 11, 12, 13, 14, 10, 11, 12, 10, 11, 12})});
  ExpectOutputs(
      Gather({L({3}, {0, 2, 3}), splits}, F({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), L({2}, {1, 0}),
             2),
      {L({3}, {0, 1, 3}), L({4}, {0, 2, 5, 5}), F({5, 2}, {6, 7, 8, 9, 0, 1, 2, 3, 4, 5})});
  ExpectOutputs(Gather({splits}, values, I({}, {2}), 0), {I({2}, {13, 14})});
  ExpectOutputs(Gather({I({1}, {0})}, S({0}, {}), I({0}, {}), 1), {I({1}, {0}), S({0}, {})});
  Gather({splits}, values, I({1}, {3}), 1).ExpectError("indices[0] = 3 is not in [0, 3)");
  Gather({L({4}, {0, 3, 3, 6})}, values, I({1}, {2}), 1).ExpectError("must not point past values");
  Gather({L({4}, {0, 3, 2, 5})}, values, I({1}, {1}), 1).ExpectError("must be sorted");
  Gather({splits}, values, I({1}, {0}), 2).ExpectError("OUTPUT_RAGGED_RANK must be 1");
}

TEST(Ragged, ToSparse) {
  const Tensor splits = L({4}, {0, 3, 3, 5});
  ExpectOutputs(
      {"RaggedTensorToSparse", {Tensors{splits}, I({5}, {10, 11, 12, 13, 14})}},
      {L({5, 2}, {0, 0, 0, 1, 0, 2, 2, 0, 2, 1}), I({5}, {10, 11, 12, 13, 14}), L({2}, {3, 3})});
  ExpectOutputs({"RaggedTensorToSparse",
                 {Tensors{L({3}, {0, 2, 3}), splits}, F({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}},
                {L({10, 4}, {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 2, 0,
                             0, 0, 2, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1}),
                 F({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), L({4}, {2, 2, 3, 2})});
  ExpectOutputs({"RaggedTensorToSparse", {Tensors{L({2}, {0, 2})}, F({2, 0}, {})}},
                {L({0, 3}, {}), F({0}, {}), L({3}, {1, 2, 0})});
  const auto expect = [](Tensors splits, Tensor values, const char* words) {
    OpCall{"RaggedTensorToSparse", {std::move(splits), std::move(values)}}.ExpectError(words);
  };
  expect({L({0}, {})}, F({0}, {}), "may not be empty");
  expect({L({2}, {1, 2})}, F({2}, {1, 2}), "must go from 0");
  expect({L({2}, {0, 1})}, F({2}, {1, 2}), "must go from 0");
}

OpCall ToTensor(Tensor shape, Tensor values, Tensor other, Tensors parts,
                std::vector<std::string> types) {
  return {"RaggedTensorToTensor",
          {std::move(shape), std::move(values), std::move(other), std::move(parts)},
          {{"row_partition_types", std::move(types)}}};
}

TEST(Ragged, ToTensor) {
  const Tensor any = L({}, {-1}), splits = L({4}, {0, 3, 3, 5}), minus = F({}, {-1});
  const Tensor v = F({5}, {1, 2, 3, 4, 5});
  const std::vector<std::string> by_splits = {"ROW_SPLITS"};
  ExpectOutputs(ToTensor(any, v, minus, {splits}, by_splits),
                {F({3, 3}, {1, 2, 3, -1, -1, -1, 4, 5, -1})});
  ExpectOutputs(ToTensor(L({2}, {-1, 2}), v, minus, {splits}, by_splits),
                {F({3, 2}, {1, 2, -1, -1, 4, 5})});
  ExpectOutputs(ToTensor(L({2}, {4, 4}), v, minus, {splits}, by_splits),
                {F({4, 4}, {1, 2, 3, -1, -1, -1, -1, -1, 4, 5, -1, -1, -1, -1, -1, -1})});
  ExpectOutputs(ToTensor(any, v, minus, {L({}, {3}), L({5}, {0, 0, 0, 2, 2})},
                         {"FIRST_DIM_SIZE", "VALUE_ROWIDS"}),
                {F({3, 3}, {1, 2, 3, -1, -1, -1, 4, 5, -1})});
  ExpectOutputs(ToTensor(I({3}, {-1, 2, -1}), F({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
                         F({2}, {-1, -2}), {splits}, by_splits),
                {F({3, 2, 2}, {0, 1, 2, 3, -1, -2, -1, -2, 6, 7, 8, 9})});
  const Tensor both = F({2, 2, 3}, {1, 2, 3, -1, -1, -1, 4, 5, -1, -1, -1, -1});
  ExpectOutputs(ToTensor(any, v, minus, {L({3}, {0, 2, 3}), splits}, {"ROW_SPLITS", "ROW_SPLITS"}),
                {both});
  ExpectOutputs(ToTensor(any, v, minus, {L({}, {2}), L({3}, {0, 0, 1}), splits},
                         {"FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS"}),
                {both});
  ExpectOutputs(ToTensor(L({3}, {2, 1, 2}), v, minus, {L({3}, {0, 2, 3}), splits},
                         {"ROW_SPLITS", "ROW_SPLITS"}),
                {F({2, 1, 2}, {1, 2, 4, 5})});
  ExpectOutputs(ToTensor(any, S({1}, {"a"}), S({}, {"-"}), {L({3}, {0, 0, 1})}, by_splits),
                {S({2, 1}, {"-", "a"})});
}

TEST(Ragged, ToTensorChecksItsPartitions) {
  const Tensor any = L({}, {-1}), v = F({5}, {1, 2, 3, 4, 5}), minus = F({}, {-1});
  const auto expect = [&](Tensors parts, std::vector<std::string> types, const char* words) {
    ToTensor(any, v, minus, std::move(parts), std::move(types)).ExpectError(words);
  };
  expect({L({4}, {0, 3, 3, 6})}, {"ROW_SPLITS"}, "of 6 values, there are 5");
  expect({L({4}, {0, 3, 2, 5})}, {"ROW_SPLITS"}, "must be sorted");
  expect({L({4}, {1, 3, 3, 5})}, {"ROW_SPLITS"}, "must begin with 0");
  expect({L({}, {3}), L({5}, {0, 0, 0, 2, 3})}, {"FIRST_DIM_SIZE", "VALUE_ROWIDS"},
         "value_rowids must be in [0, 3)");
  expect({L({5}, {0, 0, 0, 2, 2})}, {"VALUE_ROWIDS"}, "Cannot handle VALUE_ROWIDS");
  expect({L({4}, {0, 3, 3, 5})}, {"odd"}, "Unknown string for partition info type: odd");
  const auto shaped = [&](Tensor shape, Tensor other, const char* words) {
    ToTensor(std::move(shape), v, std::move(other), {L({4}, {0, 3, 3, 5})}, {"ROW_SPLITS"})
        .ExpectError(words);
  };
  shaped(L({3}, {2, 3, 4}), minus, "shape has 3 elements, the ragged tensor 2 dimensions");
  shaped(L({2}, {-2, 2}), minus, "Dimension -2 must be >= -1");
  shaped(L({}, {3}), minus, "the only scalar");
  shaped(any, F({1}, {-1}), "cannot be broadcast");
  constexpr int kMany = 254;
  ToTensor(any, F({1}, {1}), minus, Tensors(kMany, L({2}, {0, 1})),
           std::vector<std::string>(kMany, "ROW_SPLITS"))
      .ExpectError("255 dimensions");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests sparse tensors. The expected numbers are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(SparseToDense, SetsPlaces) {
  ExpectOutputs(
      {"SparseToDense", {I({2, 2}, {0, 1, 1, 2}), I({2}, {2, 3}), F({2}, {1, 2}), F({}, {9})}},
      {F({2, 3}, {9, 1, 9, 9, 9, 2})});
  ExpectOutputs({"SparseToDense", {I({2}, {1, 3}), I({1}, {5}), S({2}, {"a", "b"}), S({}, {"-"})}},
                {S({5}, {"-", "a", "-", "b", "-"})});
  ExpectOutputs({"SparseToDense", {L({}, {3}), L({1}, {5}), F({}, {1}), F({}, {9})}},
                {F({5}, {9, 9, 9, 1, 9})});
  ExpectOutputs({"SparseToDense", {I({2}, {1, 3}), I({1}, {5}), F({}, {1}), F({}, {9})}},
                {F({5}, {9, 1, 9, 1, 9})});
  ExpectOutputs({"SparseToDense",
                 {I({2, 2}, {0, 1, 0, 1}), I({2}, {2, 3}), F({2}, {1, 2}), F({}, {9})},
                 {{"validate_indices", false}}},
                {F({2, 3}, {9, 2, 9, 9, 9, 9})});
  ExpectOutputs({"SparseToDense", {I({0, 2}, {}), I({2}, {2, 3}), F({0}, {}), F({}, {9})}},
                {F({2, 3}, {9, 9, 9, 9, 9, 9})});
}

TEST(SparseToDense, Mistakes) {
  OpCall{"SparseToDense", {I({2, 2}, {1, 2, 0, 1}), I({2}, {2, 3}), F({2}, {1, 2}), F({}, {9})}}
      .ExpectError("indices[1] = [0,1] is out of order");
  OpCall{"SparseToDense", {I({2, 2}, {0, 1, 0, 1}), I({2}, {2, 3}), F({2}, {1, 2}), F({}, {9})}}
      .ExpectError("indices[1] = [0,1] is repeated");
  OpCall{"SparseToDense", {I({2, 2}, {0, 3, 1, 2}), I({2}, {2, 3}), F({2}, {1, 2}), F({}, {9})}}
      .ExpectError("indices[0] = [0,3] is out of bounds: need 0 <= index < [2,3]");
  OpCall{"SparseToDense",
         {I({2, 2}, {0, 3, 1, 2}), I({2}, {2, 3}), F({2}, {1, 2}), F({}, {9})},
         {{"validate_indices", false}}}
      .ExpectError("out of bounds");
  OpCall{"SparseToDense", {I({2, 2}, {0, 1, 1, 2}), I({2}, {2, 3}), F({3}, {1, 2, 3}), F({}, {9})}}
      .ExpectError("sparse_values has incorrect shape [3], should be [] or [2]");
  OpCall{"SparseToDense", {I({2, 2}, {0, 1, 1, 2}), I({3}, {2, 3, 4}), F({2}, {1, 2}), F({}, {9})}}
      .ExpectError("output_shape has incorrect number of elements: 3 should be: 2");
  OpCall{"SparseToDense", {I({2, 2}, {0, 1, 1, 2}), I({2}, {2, 3}), F({2}, {1, 2}), F({1}, {9})}}
      .ExpectError("default_value should be a scalar");
}

TEST(Sparse, AddAndExtrema) {
  ExpectOutputs(
      {"SparseAdd",
       {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}),
        L({3, 2}, {0, 1, 0, 2, 1, 0}), F({3}, {1e+01f, -2, 3e+01f}), L({2}, {2, 3}), F({}, {0})}},
      {L({5, 2}, {0, 0, 0, 1, 0, 2, 1, 0, 1, 1}), F({5}, {1, 1e+01f, 0, 3e+01f, 3}),
       L({2}, {2, 3})});
  ExpectOutputs(
      {"SparseAdd",
       {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}),
        L({3, 2}, {0, 1, 0, 2, 1, 0}), F({3}, {1e+01f, -2, 3e+01f}), L({2}, {2, 3}),
        F({}, {0.1f})}},
      {L({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}), F({4}, {1, 1e+01f, 3e+01f, 3}), L({2}, {2, 3})});
  ExpectOutputs({"SparseAdd",
                 {L({3, 2}, {0, 0, 0, 2, 1, 1}), C({3}, {{1, 1}, {2, 0}, {3, 0}}), L({2}, {2, 3}),
                  L({3, 2}, {0, 1, 0, 2, 1, 0}), C({3}, {{0, 1}, {-2, 0}, {3, 0}}), L({2}, {2, 3}),
                  F({}, {1})}},
                {L({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}), C({4}, {{1, 1}, {0, 1}, {3, 0}, {3, 0}}),
                 L({2}, {2, 3})});
  OpCall{"SparseAdd",
         {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}),
          L({3, 2}, {0, 1, 0, 2, 1, 0}), F({3}, {1e+01f, -2, 3e+01f}), L({2}, {3, 3}), F({}, {0})}}
      .ExpectError("shapes do not match: got 2 and 3 for dimension 0");
  OpCall{"SparseAdd",
         {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}),
          L({3, 2}, {0, 1, 0, 2, 1, 0}), F({1}, {1}), L({2}, {2, 3}), F({}, {0})}}
      .ExpectError("b_values must be");
  OpCall{"SparseAdd",
         {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}),
          L({3, 2}, {0, 1, 0, 2, 1, 0}), F({3}, {1e+01f, -2, 3e+01f}), L({2}, {2, 3}), F({1}, {0})}}
      .ExpectError("threshold must be a scalar");
  ExpectOutputs({"SparseAddGrad",
                 {F({4}, {1, 2, 3, 4}), L({2, 2}, {0, 0, 0, 2}), L({2, 2}, {0, 1, 1, 1}),
                  L({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1})}},
                {F({2}, {1, 0}), F({2}, {2, 4})});
  ExpectOutputs({"SparseSparseMaximum",
                 {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}),
                  L({3, 2}, {0, 1, 0, 2, 1, 0}), F({3}, {1e+01f, -2, 3e+01f}), L({2}, {2, 3})}},
                {L({5, 2}, {0, 0, 0, 1, 0, 2, 1, 0, 1, 1}), F({5}, {1, 1e+01f, 2, 3e+01f, 3})});
  ExpectOutputs({"SparseSparseMinimum",
                 {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}),
                  L({3, 2}, {0, 1, 0, 2, 1, 0}), F({3}, {1e+01f, -2, 3e+01f}), L({2}, {2, 3})}},
                {L({5, 2}, {0, 0, 0, 1, 0, 2, 1, 0, 1, 1}), F({5}, {0, 0, -2, 0, 0})});
  OpCall{"SparseSparseMaximum",
         {L({1, 2}, {0, 0}), F({1}, {1}), L({2}, {2, 3}), L({1, 2}, {0, 3}), F({1}, {1}),
          L({2}, {2, 3})}}
      .ExpectError("[0,3] is out of bounds");
  OpCall{"SparseAddGrad", {F({1}, {1}), L({1, 2}, {0, 0}), L({1, 2}, {0, 0}), L({}, {0})}}
      .ExpectError("must be matrices with as many columns");
}

TEST(Sparse, Order) {
  ExpectOutputs(
      {"SparseReorder", {L({3, 2}, {1, 2, 0, 0, 1, 1}), F({3}, {1, 2, -3}), L({2}, {2, 3})}},
      {L({3, 2}, {0, 0, 1, 1, 1, 2}), F({3}, {2, -3, 1})});
  ExpectOutputs(
      {"SparseReorder", {L({3, 2}, {1, 2, 0, 0, 1, 2}), S({3}, {"a", "b", "c"}), L({2}, {2, 3})}},
      {L({3, 2}, {0, 0, 1, 2, 1, 2}), S({3}, {"b", "a", "c"})});
  ExpectOutputs({"SparseReorder", {L({0, 2}, {}), F({0}, {}), L({2}, {2, 3})}},
                {L({0, 2}, {}), F({0}, {})});
}

TEST(Sparse, Reshape) {
  ExpectOutputs({"SparseReshape", {L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2}, {2, 3}), L({2}, {3, -1})}},
                {L({3, 2}, {0, 0, 1, 0, 2, 0}), L({2}, {3, 2})});
  ExpectOutputs({"SparseReshape", {L({0, 2}, {}), L({2}, {0, 3}), L({2}, {-1, 3})}},
                {L({0, 2}, {}), L({2}, {0, 3})});
  ExpectOutputs({"SparseReshape", {L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2}, {2, 3}), L({1}, {6})}},
                {L({3, 1}, {0, 2, 4}), L({1}, {6})});
  OpCall{"SparseReshape", {L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2}, {2, 3}), L({2}, {4, -1})}}
      .ExpectError("requires a multiple of 4");
  OpCall{"SparseReshape", {L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2}, {2, 3}), L({2}, {-1, -1})}}
      .ExpectError("only one output dimension may be -1, not both 0 and 1");
  OpCall{"SparseReshape", {L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2}, {2, 3}), L({1}, {7})}}.ExpectError(
      "the requested shape has 7");
}

TEST(Sparse, Slice) {
  ExpectOutputs({"SparseSlice",
                 {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}), L({2}, {0, 1}),
                  L({2}, {2, 2})}},
                {L({2, 2}, {0, 1, 1, 0}), F({2}, {2, 3}), L({2}, {2, 2})});
  ExpectOutputs({"SparseSlice",
                 {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}), L({2}, {0, 1}),
                  L({2}, {9, 9})}},
                {L({2, 2}, {0, 1, 1, 0}), F({2}, {2, 3}), L({2}, {2, 2})});
  ExpectOutputs({"SparseSlice",
                 {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}), L({2}, {5, 1}),
                  L({2}, {2, 2})}},
                {L({0, 2}, {}), F({0}, {}), L({2}, {0, 2})});
  OpCall{
      "SparseSlice",
      {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}), L({1}, {0}), L({1}, {2})}}
      .ExpectError("start must have 2 elements");
  OpCall{"SparseSlice",
         {L({3, 2}, {0, 0, 0, 2, 1, 1}), F({3}, {1, 2, 3}), L({2}, {2, 3}), L({2}, {0, 0}),
          L({2}, {-1, 2})}}
      .ExpectError("Expected a non-negative size, got -1");
  ExpectOutputs(
      {"SparseSliceGrad",
       {F({2}, {5, 6}), L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2}, {0, 1}), L({2, 2}, {0, 1, 1, 0})}},
      {F({3}, {0, 5, 6})});
  OpCall{"SparseSliceGrad",
         {F({2}, {5, 6}), L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2}, {0, 1}), L({2, 2}, {0, 1, 1, 1})}}
      .ExpectError("aren't all propagated");
}

TEST(Sparse, SplitAndConcat) {
  ExpectOutputs(
      {"SparseSplit",
       {L({}, {1}), L({4, 2}, {0, 0, 0, 2, 1, 1, 1, 4}), F({4}, {1, 2, 3, 4}), L({2}, {2, 5})},
       {{"num_split", 2}}},
      {L({3, 2}, {0, 0, 0, 2, 1, 1}), L({1, 2}, {1, 1}), F({3}, {1, 2, 3}), F({1}, {4}),
       L({2}, {2, 3}), L({2}, {2, 2})});
  ExpectOutputs(
      {"SparseSplit",
       {L({}, {-1}), L({4, 2}, {0, 0, 0, 2, 1, 1, 1, 4}), F({4}, {1, 2, 3, 4}), L({2}, {2, 5})},
       {{"num_split", 3}}},
      {L({2, 2}, {0, 0, 1, 1}), L({1, 2}, {0, 0}), L({1, 2}, {1, 0}), F({2}, {1, 3}), F({1}, {2}),
       F({1}, {4}), L({2}, {2, 2}), L({2}, {2, 2}), L({2}, {2, 1})});
  ExpectOutputs(
      {"SparseSplit",
       {L({}, {0}), L({4, 2}, {0, 0, 0, 2, 1, 1, 1, 4}), F({4}, {1, 2, 3, 4}), L({2}, {2, 5})},
       {{"num_split", 1}}},
      {L({4, 2}, {0, 0, 0, 2, 1, 1, 1, 4}), F({4}, {1, 2, 3, 4}), L({2}, {2, 5})});
  OpCall{"SparseSplit",
         {L({}, {2}), L({4, 2}, {0, 0, 0, 2, 1, 1, 1, 4}), F({4}, {1, 2, 3, 4}), L({2}, {2, 5})},
         {{"num_split", 2}}}
      .ExpectError("Input axis should be in range [-2, 2), got 2");
  OpCall{"SparseSplit",
         {L({}, {0}), L({4, 2}, {0, 0, 0, 2, 1, 1, 1, 4}), F({4}, {1, 2, 3, 4}), L({2}, {2, 5})},
         {{"num_split", 3}}}
      .ExpectError("should be between 1 and the splitting dimension size (2), got 3");
  ExpectOutputs(
      {"SparseConcat",
       {std::vector<Tensor>{L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2, 2}, {0, 1, 1, 0})},
        std::vector<Tensor>{F({3}, {1, 2, 3}), F({2}, {4, 5})},
        std::vector<Tensor>{L({2}, {2, 3}), L({2}, {2, 2})}},
       {{"concat_dim", 1}}},
      {L({5, 2}, {0, 0, 0, 2, 0, 4, 1, 1, 1, 3}), F({5}, {1, 2, 4, 3, 5}), L({2}, {2, 5})});
  ExpectOutputs(
      {"SparseConcat",
       {std::vector<Tensor>{L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2, 2}, {0, 1, 1, 0})},
        std::vector<Tensor>{F({3}, {1, 2, 3}), F({2}, {4, 5})},
        std::vector<Tensor>{L({2}, {2, 3}), L({2}, {2, 3})}},
       {{"concat_dim", -2}}},
      {L({5, 2}, {0, 0, 0, 2, 1, 1, 2, 1, 3, 0}), F({5}, {1, 2, 3, 4, 5}), L({2}, {4, 3})});
  OpCall{"SparseConcat",
         {std::vector<Tensor>{L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2, 2}, {0, 1, 1, 0})},
          std::vector<Tensor>{F({3}, {1, 2, 3}), F({2}, {4, 5})},
          std::vector<Tensor>{L({2}, {2, 3}), L({2}, {2, 2})}},
         {{"concat_dim", 0}}}
      .ExpectError("Input shapes must match: expected 3 for dimension 1 but got 2 at position 1");
  OpCall{"SparseConcat",
         {std::vector<Tensor>{L({3, 2}, {0, 0, 0, 2, 1, 1}), L({2, 2}, {0, 1, 1, 0})},
          std::vector<Tensor>{F({3}, {1, 2, 3}), F({2}, {4, 5})},
          std::vector<Tensor>{L({2}, {2, 3}), L({2}, {2, 2})}},
         {{"concat_dim", 2}}}
      .ExpectError("Concat dimension must be in range [-2, 2), got 2");
}

}  // namespace
}  // namespace penstock

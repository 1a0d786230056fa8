// SPDX-License-Identifier: Apache-2.0
//
// Tests segment reductions. The expected numbers are those of TensorFlow 2.21.
#include <limits>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(Segment, Sorted) {
  ExpectOutputs({"SegmentSum", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 0, 2, 4})}},
                {F({5, 2}, {4, 6, 0, 0, -5, 6, 0, 0, 7, -8})});
  ExpectOutputs({"SegmentSum", {F({0, 2}, {}), I({0}, {})}}, {F({0, 2}, {})});
  ExpectOutputs({"SegmentSum", {I({4}, {-7, 2, 3, -2}), L({4}, {0, 0, 2, 2})}},
                {I({3}, {-5, 0, 1})});
  ExpectOutputs({"SegmentSum", {U8({4}, {200, 100, 3, 2}), I({4}, {0, 0, 2, 2})}},
                {U8({3}, {44, 0, 5})});
  ExpectOutputs({"SegmentSum", {H({4}, {2, 1, 3, 2}), I({4}, {1, 1, 1, 2})}}, {H({3}, {0, 6, 2})});
  ExpectOutputs({"SegmentMean", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 0, 2, 4})}},
                {F({5, 2}, {2, 3, 0, 0, -5, 6, 0, 0, 7, -8})});
  ExpectOutputs({"SegmentMean", {F({0, 2}, {}), I({0}, {})}}, {F({0, 2}, {})});
  ExpectOutputs({"SegmentMean", {I({4}, {-7, 2, 3, -2}), L({4}, {0, 0, 2, 2})}},
                {I({3}, {-2, 0, 0})});
  ExpectOutputs({"SegmentMean", {U8({4}, {200, 100, 3, 2}), I({4}, {0, 0, 2, 2})}},
                {U8({3}, {22, 0, 2})});
  ExpectOutputs({"SegmentMean", {H({4}, {2, 1, 3, 2}), I({4}, {1, 1, 1, 2})}}, {H({3}, {0, 2, 2})});
  ExpectOutputs({"SegmentProd", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 0, 2, 4})}},
                {F({5, 2}, {3, 8, 1, 1, -5, 6, 1, 1, 7, -8})});
  ExpectOutputs({"SegmentProd", {F({0, 2}, {}), I({0}, {})}}, {F({0, 2}, {})});
  ExpectOutputs({"SegmentProd", {I({4}, {-7, 2, 3, -2}), L({4}, {0, 0, 2, 2})}},
                {I({3}, {-14, 1, -6})});
  ExpectOutputs({"SegmentProd", {U8({4}, {200, 100, 3, 2}), I({4}, {0, 0, 2, 2})}},
                {U8({3}, {32, 1, 6})});
  ExpectOutputs({"SegmentProd", {H({4}, {2, 1, 3, 2}), I({4}, {1, 1, 1, 2})}}, {H({3}, {1, 6, 2})});
  ExpectOutputs({"SegmentMin", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 0, 2, 4})}},
                {F({5, 2}, {1, 2, 0, 0, -5, 6, 0, 0, 7, -8})});
  ExpectOutputs({"SegmentMin", {F({0, 2}, {}), I({0}, {})}}, {F({0, 2}, {})});
  ExpectOutputs({"SegmentMin", {I({4}, {-7, 2, 3, -2}), L({4}, {0, 0, 2, 2})}},
                {I({3}, {-7, 0, -2})});
  ExpectOutputs({"SegmentMin", {U8({4}, {200, 100, 3, 2}), I({4}, {0, 0, 2, 2})}},
                {U8({3}, {100, 0, 2})});
  ExpectOutputs({"SegmentMin", {H({4}, {2, 1, 3, 2}), I({4}, {1, 1, 1, 2})}}, {H({3}, {0, 1, 2})});
  ExpectOutputs({"SegmentMax", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 0, 2, 4})}},
                {F({5, 2}, {3, 4, 0, 0, -5, 6, 0, 0, 7, -8})});
  ExpectOutputs({"SegmentMax", {F({0, 2}, {}), I({0}, {})}}, {F({0, 2}, {})});
  ExpectOutputs({"SegmentMax", {I({4}, {-7, 2, 3, -2}), L({4}, {0, 0, 2, 2})}},
                {I({3}, {2, 0, 3})});
  ExpectOutputs({"SegmentMax", {U8({4}, {200, 100, 3, 2}), I({4}, {0, 0, 2, 2})}},
                {U8({3}, {200, 0, 3})});
  ExpectOutputs({"SegmentMax", {H({4}, {2, 1, 3, 2}), I({4}, {1, 1, 1, 2})}}, {H({3}, {0, 3, 2})});
  ExpectOutputs({"SegmentSum", {C({4}, {{1, 1}, {2, 0}, {3, 0}, {2, 0}}), I({4}, {0, 0, 2, 2})}},
                {C({3}, {{3, 1}, {0, 0}, {5, 0}})});
  ExpectOutputs({"SegmentMean", {C({4}, {{1, 1}, {2, 0}, {3, 0}, {2, 0}}), I({4}, {0, 0, 2, 2})}},
                {C({3}, {{1.5f, 0.5f}, {0, 0}, {2.5f, 0}})});
  ExpectOutputs({"SegmentProd", {C({4}, {{1, 1}, {2, 0}, {3, 0}, {2, 0}}), I({4}, {0, 0, 2, 2})}},
                {C({3}, {{2, 2}, {1, 0}, {6, 0}})});
}

TEST(Segment, SortedMistakes) {
  OpCall{"SegmentSum", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 0, 2, 1})}}.ExpectError(
      "segment ids are not increasing");
  OpCall{"SegmentSum", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {-1, 0, 2, 3})}}.ExpectError(
      "segment ids must be >= 0");
  OpCall{"SegmentSum", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({3}, {0, 0, 2})}}.ExpectError(
      "same size as dimension 0");
  OpCall{"SegmentSum", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({1, 4}, {0, 0, 2, 2})}}
      .ExpectError("should be a vector");
  OpCall{"SegmentMin", {F({}, {3}), I({0}, {})}}.ExpectError("rank 1");
}

TEST(Segment, SortedWithACount) {
  const Tensor data = F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), ids = I({4}, {0, 0, 2, 2});
  const float low = std::numeric_limits<float>::lowest(), high = -low;
  ExpectOutputs({"SegmentSumV2", {data, ids, I({}, {4})}}, {F({4, 2}, {4, 6, 0, 0, 2, -2, 0, 0})});
  ExpectOutputs({"SegmentProdV2", {data, ids, L({}, {4})}},
                {F({4, 2}, {3, 8, 1, 1, -35, -48, 1, 1})});
  ExpectOutputs({"SegmentMinV2", {data, ids, I({}, {3})}}, {F({3, 2}, {1, 2, high, high, -5, -8})});
  ExpectOutputs({"SegmentMaxV2", {data, ids, I({}, {3})}}, {F({3, 2}, {3, 4, low, low, 7, 6})});
  OpCall{"SegmentSumV2", {data, ids, I({}, {2})}}.ExpectError("must be less than num_segments");
  OpCall{"SegmentSumV2", {data, ids, I({}, {-1})}}.ExpectError("num_segments");
  OpCall{"SegmentSumV2", {data, I({4}, {0, 2, 1, 2}), I({}, {4})}}.ExpectError("not increasing");
  OpCall{"SegmentSumV2", {data, I({4, 1}, {0, 0, 1, 2}), I({}, {4})}}.ExpectError("a vector");
}

TEST(Segment, Unsorted) {
  ExpectOutputs({"UnsortedSegmentSum",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, -1, 2, 2}), I({}, {4})}},
                {F({4, 2}, {1, 2, 0, 0, 2, -2, 0, 0})});
  ExpectOutputs(
      {"UnsortedSegmentSum",
       {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4, 2}, {0, 1, 1, 1, 1, 1, -1, 0}), L({}, {3})}},
      {F({3}, {-7, 1e+01f, 0})});
  ExpectOutputs({"UnsortedSegmentSum", {I({4}, {-7, 2, 3, -2}), L({4}, {2, 0, 2, 2}), I({}, {4})}},
                {I({4}, {2, 0, -6, 0})});
  ExpectOutputs({"UnsortedSegmentSum", {H({4}, {-7, 2, 3, -2}), I({4}, {2, 0, 2, 2}), I({}, {4})}},
                {H({4}, {2, 0, -6, 0})});
  OpCall{"UnsortedSegmentSum",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, -1, 2, 4}), I({}, {4})}}
      .ExpectError("segment_ids[3] = 4 is out of range");
  ExpectOutputs({"UnsortedSegmentProd",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, -1, 2, 2}), I({}, {4})}},
                {F({4, 2}, {1, 2, 1, 1, -35, -48, 1, 1})});
  ExpectOutputs(
      {"UnsortedSegmentProd",
       {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4, 2}, {0, 1, 1, 1, 1, 1, -1, 0}), L({}, {3})}},
      {F({3}, {-8, -7.2e+02f, 1})});
  ExpectOutputs({"UnsortedSegmentProd", {I({4}, {-7, 2, 3, -2}), L({4}, {2, 0, 2, 2}), I({}, {4})}},
                {I({4}, {2, 1, 42, 1})});
  ExpectOutputs({"UnsortedSegmentProd", {H({4}, {-7, 2, 3, -2}), I({4}, {2, 0, 2, 2}), I({}, {4})}},
                {H({4}, {2, 1, 42, 1})});
  OpCall{"UnsortedSegmentProd",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, -1, 2, 4}), I({}, {4})}}
      .ExpectError("segment_ids[3] = 4 is out of range");
  ExpectOutputs(
      {"UnsortedSegmentMin",
       {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, -1, 2, 2}), I({}, {4})}},
      {F({4, 2}, {1, 2, 3.4028235e+38f, 3.4028235e+38f, -5, -8, 3.4028235e+38f, 3.4028235e+38f})});
  ExpectOutputs(
      {"UnsortedSegmentMin",
       {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4, 2}, {0, 1, 1, 1, 1, 1, -1, 0}), L({}, {3})}},
      {F({3}, {-8, -5, 3.4028235e+38f})});
  ExpectOutputs({"UnsortedSegmentMin", {I({4}, {-7, 2, 3, -2}), L({4}, {2, 0, 2, 2}), I({}, {4})}},
                {I({4}, {2, 2147483647, -7, 2147483647})});
  ExpectOutputs({"UnsortedSegmentMin", {H({4}, {-7, 2, 3, -2}), I({4}, {2, 0, 2, 2}), I({}, {4})}},
                {H({4}, {2, 65504, -7, 65504})});
  OpCall{"UnsortedSegmentMin",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, -1, 2, 4}), I({}, {4})}}
      .ExpectError("segment_ids[3] = 4 is out of range");
  ExpectOutputs({"UnsortedSegmentMax",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, -1, 2, 2}), I({}, {4})}},
                {F({4, 2}, {1, 2, -3.4028235e+38f, -3.4028235e+38f, 7, 6, -3.4028235e+38f,
                            -3.4028235e+38f})});
  ExpectOutputs(
      {"UnsortedSegmentMax",
       {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4, 2}, {0, 1, 1, 1, 1, 1, -1, 0}), L({}, {3})}},
      {F({3}, {1, 6, -3.4028235e+38f})});
  ExpectOutputs({"UnsortedSegmentMax", {I({4}, {-7, 2, 3, -2}), L({4}, {2, 0, 2, 2}), I({}, {4})}},
                {I({4}, {2, INT32_MIN, 3, INT32_MIN})});
  ExpectOutputs({"UnsortedSegmentMax", {H({4}, {-7, 2, 3, -2}), I({4}, {2, 0, 2, 2}), I({}, {4})}},
                {H({4}, {2, -65504, 3, -65504})});
  OpCall{"UnsortedSegmentMax",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, -1, 2, 4}), I({}, {4})}}
      .ExpectError("segment_ids[3] = 4 is out of range");
}

TEST(Segment, Sparse) {
  ExpectOutputs(
      {"SparseSegmentSum",
       {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2})}},
      {F({3, 2}, {4, 6, 0, 0, 8, -6})}, 1e-06);
  ExpectOutputs(
      {"SparseSegmentSum", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({0}, {}), I({0}, {})}},
      {F({0, 2}, {})});
  ExpectOutputs({"SparseSegmentSumWithNumSegments",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), L({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2}),
                  I({}, {4})}},
                {F({4, 2}, {4, 6, 0, 0, 8, -6, 0, 0})}, 1e-06);
  ExpectOutputs({"SparseSegmentSumWithNumSegments",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({0}, {}), I({0}, {}), I({}, {2})}},
                {F({2, 2}, {0, 0, 0, 0})});
  OpCall{"SparseSegmentSumWithNumSegments",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2}),
          I({}, {2})}}
      .ExpectError("segment ids must be < num_segments");
  ExpectOutputs(
      {"SparseSegmentSumGrad",
       {F({3, 2}, {1, 2, 3, 4, -5, 6}), I({4}, {0, 1, 0, 4}), I({4}, {0, 0, 2, 1}), I({}, {5})}},
      {F({5, 2}, {-4, 8, 1, 2, 0, 0, 0, 0, 3, 4})}, 1e-06);
  ExpectOutputs(
      {"SparseSegmentSumGradV2",
       {F({3, 2}, {1, 2, 3, 4, -5, 6}), I({4}, {3, 1, 0, 3}), I({4}, {0, 0, 2, 2}), I({}, {5})}},
      {F({3, 2}, {-5, 6, 1, 2, -4, 8}), I({3}, {0, 1, 3})}, 1e-06);
  ExpectOutputs(
      {"SparseSegmentMean",
       {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2})}},
      {F({3, 2}, {2, 3, 0, 0, 4, -3})}, 1e-06);
  ExpectOutputs(
      {"SparseSegmentMean", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({0}, {}), I({0}, {})}},
      {F({0, 2}, {})});
  ExpectOutputs({"SparseSegmentMeanWithNumSegments",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), L({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2}),
                  I({}, {4})}},
                {F({4, 2}, {2, 3, 0, 0, 4, -3, 0, 0})}, 1e-06);
  ExpectOutputs({"SparseSegmentMeanWithNumSegments",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({0}, {}), I({0}, {}), I({}, {2})}},
                {F({2, 2}, {0, 0, 0, 0})});
  OpCall{"SparseSegmentMeanWithNumSegments",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2}),
          I({}, {2})}}
      .ExpectError("segment ids must be < num_segments");
  ExpectOutputs(
      {"SparseSegmentMeanGrad",
       {F({3, 2}, {1, 2, 3, 4, -5, 6}), I({4}, {0, 1, 0, 4}), I({4}, {0, 0, 2, 1}), I({}, {5})}},
      {F({5, 2}, {-4.5f, 7, 0.5f, 1, 0, 0, 0, 0, 3, 4})}, 1e-06);
  ExpectOutputs(
      {"SparseSegmentMeanGradV2",
       {F({3, 2}, {1, 2, 3, 4, -5, 6}), I({4}, {3, 1, 0, 3}), I({4}, {0, 0, 2, 2}), I({}, {5})}},
      {F({3, 2}, {-2.5f, 3, 0.5f, 1, -2, 4}), I({3}, {0, 1, 3})}, 1e-06);
  ExpectOutputs(
      {"SparseSegmentSqrtN",
       {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2})}},
      {F({3, 2}, {2.828427f, 4.2426405f, 0, 0, 5.656854f, -4.2426405f})}, 1e-06);
  ExpectOutputs(
      {"SparseSegmentSqrtN", {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({0}, {}), I({0}, {})}},
      {F({0, 2}, {})});
  ExpectOutputs({"SparseSegmentSqrtNWithNumSegments",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), L({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2}),
                  I({}, {4})}},
                {F({4, 2}, {2.828427f, 4.2426405f, 0, 0, 5.656854f, -4.2426405f, 0, 0})}, 1e-06);
  ExpectOutputs({"SparseSegmentSqrtNWithNumSegments",
                 {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({0}, {}), I({0}, {}), I({}, {2})}},
                {F({2, 2}, {0, 0, 0, 0})});
  OpCall{"SparseSegmentSqrtNWithNumSegments",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, 0, 3}), I({4}, {0, 0, 2, 2}),
          I({}, {2})}}
      .ExpectError("segment ids must be < num_segments");
  ExpectOutputs(
      {"SparseSegmentSqrtNGrad",
       {F({3, 2}, {1, 2, 3, 4, -5, 6}), I({4}, {0, 1, 0, 4}), I({4}, {0, 0, 2, 1}), I({}, {5})}},
      {F({5, 2}, {-4.2928934f, 7.4142137f, 0.70710677f, 1.4142135f, 0, 0, 0, 0, 3, 4})}, 1e-06);
  ExpectOutputs(
      {"SparseSegmentSqrtNGradV2",
       {F({3, 2}, {1, 2, 3, 4, -5, 6}), I({4}, {3, 1, 0, 3}), I({4}, {0, 0, 2, 2}), I({}, {5})}},
      {F({3, 2}, {-3.535534f, 4.2426405f, 0.70710677f, 1.4142135f, -2.828427f, 5.656854f}),
       I({3}, {0, 1, 3})},
      1e-06);
  ExpectOutputs(
      {"SparseSegmentSum", {I({2, 2}, {1, 2, 3, 4}), I({4}, {0, 1, 0, 1}), I({4}, {0, 0, 2, 2})}},
      {I({3, 2}, {4, 6, 0, 0, 4, 6})}, 1e-06);
}

TEST(Segment, SparseMistakes) {
  OpCall{"SparseSegmentMean",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, 4, 3}), I({4}, {0, 0, 2, 2})}}
      .ExpectError("indices[2] == 4 out of range [0, 4)");
  OpCall{"SparseSegmentMean",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, -1, 3}), I({4}, {0, 0, 2, 2})}}
      .ExpectError("indices[2] == -1 out of range [0, 4)");
  OpCall{"SparseSegmentMean",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({4}, {0, 1, 1, 3}), I({4}, {0, 0, 2, 1})}}
      .ExpectError("segment ids are not increasing");
  OpCall{"SparseSegmentMean",
         {F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), I({3}, {0, 1, 1}), I({4}, {0, 0, 2, 1})}}
      .ExpectError("segment_ids and indices should have same size");
  OpCall{"SparseSegmentMeanGrad",
         {F({3, 2}, {1, 2, 3, 4, -5, 6}), I({4}, {0, 1, 0, 3}), I({4}, {0, 0, 3, 2}), I({}, {5})}}
      .ExpectError("Segment id 3 out of range [0, 3).");
  OpCall{"SparseSegmentMeanGrad",
         {F({3, 2}, {1, 2, 3, 4, -5, 6}), I({4}, {0, 1, 0, 5}), I({4}, {0, 0, 2, 2}), I({}, {5})}}
      .ExpectError("Index 5 out of range [0, 5).");
}

}  // namespace
}  // namespace penstock

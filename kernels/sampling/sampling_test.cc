// SPDX-License-Identifier: Apache-2.0
//
// Compares candidates, counts and accidental hits with those of TensorFlow 2.21 for the same seeds.
// Also tests invalid arguments.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <numeric>

#include "kernels/random/testing/draw.h"

namespace penstock {
namespace {

Tensor Classes(const Shape& shape, const std::vector<int64_t>& values) {
  Tensor t(DType::kInt64, shape);
  std::copy(values.begin(), values.end(), t.mutable_data<int64_t>());
  return t;
}
const Tensor& True() {
  static const Tensor classes = Classes({2, 2}, {1, 4, 9, 2});
  return classes;
}

Attrs Draws(int sampled, bool unique, Attrs more = {{"range_max", 12}}) {
  more.insert({{"num_true", 2}, {"num_sampled", sampled}, {"unique", unique}});
  more.merge(Seeds(87, 12));
  return more;
}

struct Expected {
  std::vector<int64_t> candidates;
  std::vector<float> true_counts;
  std::vector<float> counts;
};

void ExpectStep(RepeatedOp& node, const Expected& expected) {
  const std::vector<Tensor> out = node.RunAll();
  const auto candidates = out[0].flat<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(candidates.begin(), candidates.end()), expected.candidates);
  EXPECT_EQ(out[1].shape(), Shape({2, 2}));
  for (int i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(out[1].data<float>()[i],
                    expected.true_counts[expected.true_counts.size() == 1 ? 0 : i]);
  }
  for (size_t i = 0; i < expected.candidates.size(); ++i) {
    EXPECT_FLOAT_EQ(out[2].data<float>()[i], expected.counts[expected.counts.size() == 1 ? 0 : i]);
  }
}

TEST(Uniform, AgreesWithTensorFlow) {
  RepeatedOp unique("UniformCandidateSampler", Draws(5, true), {True()});
  ExpectStep(unique, {{8, 9, 5, 11, 4}, {0.40670782f}, {0.40670782f}});
  ExpectStep(unique, {{6, 0, 10, 2, 1}, {0.41666669f}, {0.41666669f}});
  RepeatedOp wide("UniformCandidateSampler",
                  Draws(4, false, {{"range_max", (int64_t{1} << 62) + 12345}}), {True()});
  ExpectStep(wide,
             {{2193874145266227053, 4518672667607940440, 3626435730986089228, 2225898178283882720},
              {8.6736174e-19f},
              {8.6736174e-19f}});
}

TEST(LogUniform, AgreesWithTensorFlow) {
  RepeatedOp node("LogUniformCandidateSampler", Draws(6, true), {True()});
  ExpectStep(node, {{0, 3, 1, 7, 9, 6},
                    {0.94847512f, 0.42649156f, 0.22295219f, 0.67295384f},
                    {1.6214290f, 0.52198350f, 0.94847512f, 0.27552131f, 0.22295219f, 0.31236029f}});
  ExpectStep(node, {{1, 5, 10, 0, 4, 7},
                    {0.87316036f, 0.58721024f, 0.36517131f, 0.76010424f},
                    {0.87316036f, 0.52468032f, 0.33909404f, 0.97718745f, 0.58721024f, 0.4311257f}});
}

TEST(Learned, AgreesWithTensorFlow) {
  RepeatedOp unique("LearnedUnigramCandidateSampler", Draws(5, true), {True()});
  ExpectStep(unique, {{8, 9, 5, 1, 11}, {0.45614883f}, {0.45614883f}});
  ExpectStep(unique, {{10, 5, 0, 1, 3},
                      {0.55120468f},
                      {0.32106584f, 0.32106584f, 0.32106584f, 0.55120468f, 0.32106584f}});
  RepeatedOp repeated("ThreadUnsafeUnigramCandidateSampler", Draws(5, false), {True()});
  ExpectStep(repeated, {{8, 9, 5, 1, 1}, {0.41666669f}, {0.41666669f}});
  ExpectStep(repeated, {{10, 5, 0, 10, 1}, {0.625f}, {0.3125f, 0.3125f, 0.3125f, 0.3125f, 0.625f}});
}

const std::vector<float> kCounts = {4.0, 1.0, 0.5, 3.0, 2.0, 1.0, 1.0, 9.0, 0.25, 2.0};

TEST(Fixed, AgreesWithTensorFlow) {
  RepeatedOp reserved("FixedUnigramCandidateSampler",
                      Draws(5, true,
                            {{"range_max", 12},
                             {"distortion", 0.75f},
                             {"num_reserved_ids", 2},
                             {"unigrams", kCounts}}),
                      {True()});
  ExpectStep(reserved, {{9, 6, 10, 5, 2},
                        {0, 0.24019542f, 0.93895394f, 0.75344700f},
                        {0.93895394f, 0.55189300f, 0.14972445f, 0.66997635f, 0.75344700f}});
  ExpectStep(reserved, {{8, 5, 9, 2, 7},
                        {0, 0.18618363f, 0.87718731f, 0.65010905f},
                        {0.29577154f, 0.56457961f, 0.87718731f, 0.65010905f, 0.29577154f}});
  RepeatedOp repeated("FixedUnigramCandidateSampler",
                      Draws(5, false, {{"range_max", 10}, {"unigrams", kCounts}}), {True()});
  ExpectStep(repeated, {{1, 9, 9, 7, 0},
                        {0.21052632f, 0.42105263f, 0.42105263f, 0.10526316f},
                        {0.21052632f, 0.42105263f, 0.42105263f, 1.8947369f, 0.84210527f}});
}

TEST(Fixed, ReadsCountsFromAFileAndTakesItsShard) {
  const std::string file = testing::TempDir() + "/vocabulary.csv";
  std::ofstream(file) << "a,1\nb,4\n\nc,0\nd,0\ne,0\n";
  RepeatedOp node(
      "FixedUnigramCandidateSampler",
      Draws(8, false, {{"range_max", 2}, {"num_shards", 2}, {"shard", 1}, {"vocab_file", file}}),
      {Classes({1, 2}, {0, 1})});
  const Tensor candidates = node.Run();  // b and d
  for (const int64_t c : candidates.flat<int64_t>()) EXPECT_EQ(c, 0);
}

TEST(All, IsEveryClass) {
  RepeatedOp node("AllCandidateSampler", Draws(12, true, {}), {True()});
  std::vector<int64_t> all(12);
  std::iota(all.begin(), all.end(), 0);
  ExpectStep(node, {all, {1}, {1}});
}

TEST(Samplers, Mistakes) {
  const auto expect = [](const char* op, Attrs attrs, const Tensor& classes, const char* words) {
    OpCall{op, {classes}, std::move(attrs)}.ExpectError(words);
  };
  const Attrs narrow = Draws(5, true, {{"range_max", 4}});
  expect("UniformCandidateSampler", narrow, Classes({1, 2}, {0, 1}),
         "Sampler's range is too small.");
  expect("LogUniformCandidateSampler", Draws(2, false), Classes({1, 2}, {3, 12}),
         "`true_candidate` out of range [0, 12), received 12");
  expect("LogUniformCandidateSampler", Draws(2, false), Classes({1, 2}, {-1, 2}), "received -1");
  expect("UniformCandidateSampler", Draws(2, false), Longs({1, 2}), "must be a matrix");
  expect("UniformCandidateSampler", Draws(2, false), Classes({1, 3}, {1, 2, 3}),
         "expected: 2 was: 3");
  const auto fixed = [&](Attrs more, const char* words) {
    more.insert({"range_max", 10});
    expect("FixedUnigramCandidateSampler", Draws(2, true, std::move(more)), True(), words);
  };
  fixed({}, "Must provide either vocab_file or unigrams.");
  fixed({{"unigrams", kCounts}, {"vocab_file", "x"}}, "Must only provide one of");
  fixed({{"unigrams", std::vector<float>{1, 2}}}, "range is 10 must be equal to weights size  2");
  fixed({{"vocab_file", testing::TempDir() + "/none"}}, "none");
  std::vector<float> one(10);
  fixed({{"unigrams", one}}, "no weight is above zero");
  one[3] = 1;
  fixed({{"unigrams", one}}, "Sampler's range is too small.");
  one[4] = -1;
  fixed({{"unigrams", one}}, "weight 4 is -1");
}

TEST(AccidentalHits, AgreeWithTensorFlow) {
  const auto out =
      OpCall{"ComputeAccidentalHits", {True(), Longs({4, 2, 7, 4})}, {{"num_true", 2}}}.Run();
  EXPECT_TRUE(SameTensor(out[0], Ints({0, 1})));
  EXPECT_TRUE(SameTensor(out[1], Longs({3, 1})));
  for (const float w : out[2].flat<float>()) {
    EXPECT_EQ(w, std::numeric_limits<float>::lowest());
  }
  OpCall{"ComputeAccidentalHits", {True(), Longs({4})}, {{"num_true", 3}}}.ExpectError("num_true");
  OpCall{"ComputeAccidentalHits", {True(), True()}, {{"num_true", 2}}}.ExpectError("vector");
}

}  // namespace
}  // namespace penstock

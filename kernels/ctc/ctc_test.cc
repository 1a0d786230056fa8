// SPDX-License-Identifier: Apache-2.0
//
// Tests the CTC ops. The expected numbers are TensorFlow's.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

auto Near(const std::vector<float>& values) { return Pointwise(FloatNear(1e-5f), values); }

const Tensor kLogits =
    Tensor::Of<float>({4, 1, 3}, {.1, .42, -.42, .02, .79, .79, -.75, -.59, -.9, -.12, -.94, -.09});

StatusOr<std::vector<Tensor>> Loss(const std::vector<int32_t>& labels, int32_t length,
                                   const Attrs& attrs = {}, const char* op = "CTCLoss") {
  std::vector<int64_t> indices;
  for (size_t i = 0; i < labels.size(); ++i) {
    indices.push_back(0);
    indices.push_back(static_cast<int64_t>(i));
  }
  OpRunner run(op);
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.In(kLogits)
      .In(Tensor::Of<int64_t>({static_cast<int64_t>(labels.size()), 2}, indices))
      .In(Tensor::Vector(labels))
      .In(Tensor::Vector<int32_t>({length}))
      .Run();
}
void ExpectLoss(const StatusOr<std::vector<Tensor>>& loss, float value,
                const std::vector<float>& gradient) {
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_NEAR((*loss)[0].flat<float>()[0], value, 1e-5);
  EXPECT_THAT((*loss)[1].flat<float>(), Near(gradient));
}
std::string Mistake(const StatusOr<std::vector<Tensor>>& result) {
  return std::string(result.status().message());
}

TEST(CtcLossTest, SumsOverAllSpellings) {
  ExpectLoss(Loss({0, 1}, 4), 2.0794077f,
             {-.52315718f, .46342218f, .05973504f, -.08599913f, .02506867f, .06093043f, .24399723f,
              -.30229968f, .05830252f, .40471309f, -.20972048f, -.1949926f});
}

TEST(CtcLossTest, RepeatedLabelsNeedABlankBetweenThem) {
  ExpectLoss(Loss({0, 0}, 3), 3.1004563f,
             {-.66348642f, .46342218f, .20006424f, .18798643f, .40600675f, -.59399325f, -.67042589f,
              .3867588f, .28366706f, 0, 0, 0});
  ExpectLoss(Loss({0, 0}, 2, {{"preprocess_collapse_repeated", true}}), 1.437604f,
             {-.50512868f, .46342218f, .04170646f, -.23673356f, .40600675f, -.16927326f, 0, 0, 0, 0,
              0, 0});
  ExpectLoss(
      Loss({0, 0}, 2, {{"ctc_merge_repeated", false}}), 2.7605023f,
      {-.66348642f, .46342218f, .20006424f, -.81201357f, .40600675f, .40600675f, 0, 0, 0, 0, 0, 0});
  const auto impossible = Loss({0, 0}, 2);
  ASSERT_TRUE(impossible.ok()) << impossible.status();
  EXPECT_TRUE(std::isinf((*impossible)[0].flat<float>()[0]));
  EXPECT_NEAR((*impossible)[1].flat<float>()[0], .33651358f, 1e-6);
}

TEST(CtcLossTest, WhatIsTooLongIsAnErrorOrIgnored) {
  EXPECT_THAT(Mistake(Loss({0, 1}, 1)), HasSubstr("Not enough time"));
  ExpectLoss(Loss({0, 1}, 1, {{"ignore_longer_outputs_than_inputs", true}}), 0,
             std::vector<float>(12));
}

TEST(CtcLossTest, MistakesAreNamed) {
  EXPECT_THAT(Mistake(Loss({}, 4)), HasSubstr("Labels length is zero in batch 0"));
  EXPECT_THAT(Mistake(Loss({2, 0}, 4)), HasSubstr("following a null label"));
  EXPECT_THAT(Mistake(Loss({-1, 0}, 4)), HasSubstr("nonnegative"));
  EXPECT_THAT(Mistake(Loss({0, 1}, 5)), HasSubstr("must be <= 4"));
  EXPECT_THAT(Mistake(Loss({0, 1}, -1)), HasSubstr("must not be < 0"));
}

// Rotating the classes of the logits by one, with class 0 as the blank, does not change the loss.
TEST(CtcLossTest, V2HasTheBlankInFront) {
  std::vector<float> moved;
  for (int t = 0; t < 4; ++t) {
    for (int c : {2, 0, 1}) moved.push_back(kLogits.flat<float>()[t * 3 + c]);
  }
  const auto loss = OpRunner("CTCLossV2")
                        .In(Tensor::Of<float>({4, 1, 3}, moved))
                        .In(Tensor::Of<int64_t>({2, 2}, {0, 0, 0, 1}))
                        .In(Tensor::Vector<int32_t>({1, 2}))
                        .In(Tensor::Vector<int32_t>({4}))
                        .Run();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_NEAR((*loss)[0].flat<float>()[0], 2.0794077f, 1e-5);
}

const Tensor kTwo = Tensor::Of<float>(
    {5, 2, 3}, {.9,   -1.3, 1.1, .5,  -2.9, .4,  -1.4, -.5, -1.3, 1.2, -.4, -2.1, .3,   1.7, -1.2,
                -1.7, -.7,  2.6, 2.9, 1,    2.4, 2.1,  -.7, -2.4, .9,  .3,  -.8,  -1.6, -.6, -.2});
const Tensor kLengths = Tensor::Vector<int32_t>({5, 3});

TEST(CtcGreedyDecoderTest, TakesTheBestOfEachStep) {
  const auto merged =
      OpRunner("CTCGreedyDecoder").In(kTwo).In(kLengths).Attr("merge_repeated", true).Run();
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT((*merged)[0].flat<int64_t>(), ElementsAre(0, 0, 0, 1, 1, 0));
  EXPECT_THAT((*merged)[1].flat<int64_t>(), ElementsAre(1, 0, 0));
  EXPECT_THAT((*merged)[2].flat<int64_t>(), ElementsAre(2, 2));
  EXPECT_THAT((*merged)[3].flat<float>(), Near({-6.1f, -4.3f}));
  const auto other =
      OpRunner("CTCGreedyDecoder").In(kTwo).In(kLengths).Attr("blank_index", 0).Run();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT((*other)[1].flat<int64_t>(), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(
      Mistake(OpRunner("CTCGreedyDecoder").In(kTwo).In(kLengths).Attr("blank_index", 9).Run()),
      HasSubstr("blank_index"));
}

TEST(CtcBeamSearchDecoderTest, FindsTheBestSequences) {
  const auto best = OpRunner("CTCBeamSearchDecoder")
                        .In(kTwo)
                        .In(kLengths)
                        .Attr("beam_width", 4)
                        .Attr("top_paths", 2)
                        .Run();
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_THAT((*best)[2].flat<int64_t>(), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT((*best)[3].flat<int64_t>(), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT((*best)[4].flat<int64_t>(), ElementsAre(2, 3));
  EXPECT_THAT((*best)[6].flat<float>(), Near({-1.2881994f, -1.4001495f, -.24808466f, -2.1946557f}));
  const auto wide = OpRunner("CTCBeamSearchDecoder")
                        .In(kTwo)
                        .In(kLengths)
                        .Attr("beam_width", std::numeric_limits<int64_t>::max())
                        .Attr("top_paths", 1)
                        .Run();
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_THAT((*wide)[1].flat<int64_t>(), ElementsAre(0, 1, 0, 0));
  const auto few = OpRunner("CTCBeamSearchDecoder")
                       .In(kTwo)
                       .In(Tensor::Vector<int32_t>({0, 0}))
                       .Attr("beam_width", 4)
                       .Attr("top_paths", 2)
                       .Run();
  EXPECT_THAT(Mistake(few), HasSubstr("Less leaves"));
}

}  // namespace
}  // namespace penstock

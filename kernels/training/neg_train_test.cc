// SPDX-License-Identifier: Apache-2.0
//
// Compares NegTrain with TensorFlow 2.21. Its random words differ from ours, so the tests use
// vocabularies in which only one word can be drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/state/testing/test_variables.h"

namespace penstock {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

struct Trained {
  std::vector<float> in, out;
};

struct Words {
  std::vector<int32_t> examples = {0, 1}, labels = {2, 2};
};

StatusOr<Trained> Train(const std::vector<int64_t>& counts, int64_t samples,
                        const Words& words = {}) {
  TestVariables variables;
  Tensor in(DType::kFloat, {3, 2}), out(DType::kFloat, {3, 2});
  for (int i = 0; i < 6; ++i) {
    in.mutable_flat<float>()[i] = static_cast<float>(i) / 10;
    out.mutable_flat<float>()[i] = static_cast<float>(i) / -7 + 0.3f;
  }
  const Tensor w_in = variables.New(in, true), w_out = variables.New(out, true);
  RETURN_IF_ERROR(variables.Op("NegTrain")
                      .In(w_in)
                      .In(w_out)
                      .In(Tensor::Vector(words.examples))
                      .In(Tensor::Vector(words.labels))
                      .In(Tensor::Scalar(0.5f))
                      .Attr("vocab_count", counts)
                      .Attr("num_negative_samples", samples)
                      .Run()
                      .status());
  const Tensor a = TestVariables::Value(w_in), b = TestVariables::Value(w_out);
  return Trained{{a.flat<float>().begin(), a.flat<float>().end()},
                 {b.flat<float>().begin(), b.flat<float>().end()}};
}

void Expect(const StatusOr<Trained>& trained, const std::vector<float>& in,
            const std::vector<float>& out) {
  ASSERT_EQ(trained.status(), OkStatus());
  EXPECT_THAT(trained->in, Pointwise(FloatNear(1e-6), in));
  EXPECT_THAT(trained->out, Pointwise(FloatNear(1e-6), out));
}

TEST(NegTrain, PullsPairsTogether) {
  const std::vector<float> in = {-0.06926256f, -0.005716525f, 0.126358f, 0.19452235f, 0.4f, 0.5f};
  const std::vector<float> out = {0.3f,         0.15714286f,  0.014285713f,
                                  -0.12857142f, -0.21716605f, -0.30737412f};
  Expect(Train({1, 1, 1}, 0), in, out);
  // Every drawn sample is the label itself, and so is skipped.
  Expect(Train({0, 0, 5}, 3), in, out);
}

TEST(NegTrain, PushesOthersAway) {
  Expect(Train({5, 0, 0}, 3), {-0.29574704f, -0.105353035f, -0.064930245f, 0.19086903f, 0.4f, 0.5f},
         {0.14619114f, -0.14906529f, 0.014285713f, -0.12857142f, -0.21716605f, -0.30737412f});
}

TEST(NegTrain, MistakesChangeNothing) {
  const auto error = [](const StatusOr<Trained>& trained) {
    return std::string(trained.status().message());
  };
  EXPECT_THAT(error(Train({1, 1}, 2)), HasSubstr("vocab_size mismatches: 3 vs. 2"));
  EXPECT_THAT(error(Train({1, 1, 1}, 2, {{0}, {0, 1}})), HasSubstr("vectors of one length"));
  EXPECT_THAT(error(Train({1, 1, 1}, 2, {{3}, {0}})), HasSubstr("examples hold word 3"));
  EXPECT_THAT(error(Train({1, 1, 1}, 2, {{0}, {-1}})), HasSubstr("labels hold word -1"));
  EXPECT_THAT(error(Train({0, 0, 0}, 2)), HasSubstr("no words to sample from"));
  EXPECT_THAT(error(Train({1, -1, 1}, 2)), HasSubstr("vocab_count holds -1"));
  EXPECT_THAT(error(Train({1, 1, 1}, int64_t{1} << 40)), HasSubstr("num_negative_samples"));
}

}  // namespace
}  // namespace penstock

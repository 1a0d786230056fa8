// SPDX-License-Identifier: Apache-2.0
//
// Tests Poisson, binomial, gamma and multinomial numbers, whose expected values are those of
// TensorFlow 2.21; and NonDeterministicInts.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

const Attrs kSeeds = {{"seed", 87}, {"seed2", 12}};

TEST(RandomPoisson, DrawsTensorFlowsNumbers) {
  Attrs attrs = kSeeds;
  attrs["dtype"] = DType::kInt64;
  ExpectOutputs(
      {"RandomPoissonV2", {I({1}, {5}), F({4}, {0.5, 3, 25, 100})}, attrs},
      {L({5, 4}, {1, 3, 27, 98, 0, 5, 23, 105, 0, 0, 28, 99, 3, 1, 28, 103, 0, 2, 22, 104})});
  attrs["dtype"] = DType::kFloat;
  ExpectOutputs({"RandomPoissonV2", {I({1}, {5}), H({2}, {0.5, 25})}, attrs},
                {F({5, 2}, {1, 25, 0, 26, 0, 25, 3, 33, 0, 29})});
  ExpectOutputs({"StatelessRandomPoisson",
                 {I({2}, {5, 2}), I({2}, {1, 2}), F({2}, {0.5, 25})},
                 {{"dtype", DType::kInt32}}},
                {I({5, 2}, {3, 29, 2, 25, 1, 24, 3, 19, 0, 27})});
  // In the first version of the op, the numbers have the type of the rates.
  ExpectOutputs({"RandomPoisson", {I({1}, {5}), F({2}, {0.5, 25})}, kSeeds},
                {F({5, 2}, {1, 25, 0, 26, 0, 25, 3, 33, 0, 29})});
}

TEST(RandomPoisson, Mistakes) {
  const auto rate = [](Tensor rate, DType type) {
    return OpCall{"RandomPoissonV2", {I({1}, {2}), std::move(rate)}, {{"dtype", type}}};
  };
  rate(F({1}, {NAN}), DType::kInt64).ExpectError("rate must be finite");
  rate(F({1}, {INFINITY}), DType::kDouble).ExpectError("rate must be finite");
  rate(D({1}, {1e12}), DType::kInt32).ExpectError("at most the largest int32");
  ExpectOutputs(rate(F({1}, {-1}), DType::kInt64), {L({2, 1}, {0, 0})});
  ExpectOutputs(rate(F({0}, {}), DType::kInt64), {L({2, 0}, {})});
  OpCall{"StatelessRandomPoisson",
         {I({2}, {2, 5}), I({2}, {1, 2}), F({2}, {1, 2})},
         {{"dtype", DType::kInt32}}}
      .ExpectError("must end with broadcasted shape");
}

OpCall Binomial(std::vector<int32_t> shape, std::vector<int64_t> seed, Tensor counts, Tensor probs,
                DType type) {
  return {"StatelessRandomBinomial",
          {Tensor::Vector(shape), Tensor::Vector(seed), std::move(counts), std::move(probs)},
          {{"dtype", type}}};
}

TEST(StatelessBinomial, DrawsTensorFlowsNumbers) {
  ExpectOutputs(Binomial({6, 4}, {1, 2}, F({4}, {10, 100, 50, 1000}), F({4}, {.3, .5, .9, .001}),
                         DType::kInt64),
                {L({6, 4}, {5, 50, 44, 1, 5, 49, 44, 1, 5, 44, 47, 1,
                            4, 53, 46, 0, 4, 50, 45, 0, 3, 48, 44, 1})});
  ExpectOutputs(
      Binomial({3, 4}, {1, 2}, F({3, 1}, {10, 100, 30}), F({4}, {0, 1, -1, NAN}), DType::kFloat),
      {F({3, 4}, {0, 10, 0, NAN, 0, 100, 0, NAN, 0, 30, 0, NAN})});
  ExpectOutputs(
      Binomial({2, 2, 3}, {3, 4}, F({2, 1}, {10, 100}), F({3}, {.2, .5, .7}), DType::kFloat),
      {F({2, 2, 3}, {3, 2, 6, 17, 54, 77, 4, 3, 7, 18, 55, 68})});
}

TEST(StatelessBinomial, Mistakes) {
  Binomial({4}, {3, 4}, F({2, 1}, {10, 100}), F({3}, {.2, .5, .7}), DType::kFloat)
      .ExpectError("must end with broadcasted shape");
  Binomial({1}, {3, 4}, F({1}, {INFINITY}), F({1}, {.2}), DType::kFloat)
      .ExpectError("counts must be finite");
  Binomial({1}, {3, 4}, F({1}, {5}), F({1}, {NAN}), DType::kInt32).ExpectError("probs has NaN");
  Binomial({2}, {3, 4}, F({2}, {5, 6}), F({3}, {0, 0, 0}), DType::kInt32).ExpectError("[3]");
}

TEST(StatelessGamma, DrawsTensorFlowsNumbers) {
  const Tensor expected =
      F({3, 2}, {0.023146213963627815f, 2.4083807468414307f, 0.0032273458782583475f,
                 9.179442405700684f, 0.15987280011177063f, 2.6584157943725586f});
  const Tensor shape = I({2}, {3, 2}), alpha = F({2}, {0.5, 3});
  ExpectOutputs({"StatelessRandomGammaV2", {shape, L({2}, {5, 6}), alpha}}, {expected}, 2e-6);
  const auto key = OpCall{"StatelessRandomGetKeyCounter", {L({2}, {5, 6})}}.Run();
  ExpectOutputs({"StatelessRandomGammaV3", {shape, key[0], key[1], I({}, {1}), alpha}}, {expected},
                2e-6);
  OpCall{"StatelessRandomGammaV2", {I({2}, {3, 3}), L({2}, {5, 6}), alpha}}.ExpectError(
      "must end with broadcasted shape");
  OpCall{"StatelessRandomGammaV2", {shape, L({2}, {5, 6}), F({2}, {-1, 3})}}.ExpectError(
      "alpha must be positive");
}

TEST(StatelessMultinomial, DrawsTensorFlowsNumbers) {
  const Tensor logits = F({2, 3}, {1, 2, 3, 3, 2, 1});
  ExpectOutputs({"StatelessMultinomial", {logits, I({}, {7}), I({2}, {5, 6})}},
                {L({2, 7}, {1, 1, 1, 2, 1, 1, 0, 2, 0, 1, 0, 0, 1, 0})});
  OpCall{"StatelessMultinomial", {logits, I({}, {7}), I({3}, {5, 6, 7})}}.ExpectError("seed");
}

TEST(NonDeterministicInts, Differ) {
  const auto draw = [] {
    return *OpRunner("NonDeterministicInts").In(L({1}, {3})).Attr("dtype", DType::kInt32).Run1();
  };
  EXPECT_EQ(draw().shape(), Shape({3}));
  EXPECT_FALSE(SameTensor(draw(), draw()));
}

}  // namespace
}  // namespace penstock

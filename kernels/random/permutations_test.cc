// SPDX-License-Identifier: Apache-2.0
//
// Tests StatelessShuffle, RandomIndexShuffle and StochasticCastToInt. The expected numbers are
// those of TensorFlow 2.21.
#include <limits>
#include <set>
#include <vector>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tests below use its names

std::vector<OpCall::Arg> WithStream(Tensor x) {
  return {std::move(x), U64({1}, {5}), U64({2}, {7, 9}), I({}, {1})};
}

TEST(StatelessShuffle, AgreesWithTensorFlow) {
  ExpectOutputs({"StatelessShuffle", WithStream(I({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}))},
                {I({10}, {5, 7, 9, 6, 8, 3, 4, 2, 0, 1})});
  ExpectOutputs({"StatelessShuffle", WithStream(S({1}, {"a"}))}, {S({1}, {"a"})});
  std::vector<OpCall::Arg> args = WithStream(I({3}, {1, 2, 3}));
  args[3] = I({}, {2});
  OpCall{"StatelessShuffle", args}.ExpectError("alg is 2");
}

TEST(RandomIndexShuffle, AgreesWithTensorFlow) {
  ExpectOutputs({"RandomIndexShuffle",
                 {I({12}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), I({3}, {5, 6, 7}), I({}, {11})}},
                {I({12}, {11, 4, 5, 8, 0, 2, 1, 6, 3, 7, 10, 9})});
  ExpectOutputs({"RandomIndexShuffle",
                 {L({3}, {0, 1, int64_t{1} << 40}),
                  L({3, 3}, {1, 2, -3, 4, 5, 6, 7, 8, (int64_t{1} << 33) + 9}),
                  L({3}, {int64_t{1} << 62, int64_t{1} << 33, int64_t{1} << 41})},
                 {{"rounds", 8}}},
                {L({3}, {1924160432026129442, 7112984812, 1488362912794})});
  ExpectOutputs({"RandomIndexShuffle", {I({}, {0}), I({3}, {1, 2, 3}), I({}, {0})}}, {I({}, {0})});
}

TEST(RandomIndexShuffle, IsAPermutation) {
  for (const int32_t size : {1, 2, 100, 5000}) {
    std::vector<int32_t> indices(size);
    for (int32_t i = 0; i < size; ++i) indices[i] = i;
    const Tensor y =
        OpCall{"RandomIndexShuffle", {I({size}, indices), I({3}, {1, 2, 3}), I({}, {size - 1})}}
            .Run1();
    const auto places = y.flat<int32_t>();
    EXPECT_EQ(std::set<int32_t>(places.begin(), places.end()).size(), static_cast<size_t>(size));
  }
}

TEST(RandomIndexShuffle, Mistakes) {
  const Tensor seed = I({3}, {1, 2, 3});
  OpCall{"RandomIndexShuffle", {I({}, {3}), seed, I({}, {2})}}.ExpectError(
      "max_index must be >= index");
  OpCall{"RandomIndexShuffle", {I({}, {-3}), seed, I({}, {-2})}}.ExpectError("index >= 0");
  OpCall{"RandomIndexShuffle", {I({2}, {1, 2}), I({2}, {1, 2}), I({}, {2})}}.ExpectError(
      "vector of size [3]");
  OpCall{"RandomIndexShuffle", {I({2}, {1, 2}), seed, I({3}, {2, 2, 2})}}.ExpectError("index");
  OpCall{"RandomIndexShuffle", {I({}, {1}), seed, I({}, {2})}, {{"rounds", 5}}}.ExpectError(
      "even number");
}

TEST(StochasticCastToInt, AgreesWithTensorFlow) {
  const std::vector<float> x = {.5f,
                                -.5f,
                                1.25f,
                                -1.25f,
                                2,
                                300.5f,
                                -40000.5f,
                                7.75f,
                                .1f,
                                .9f,
                                -.9f,
                                3.5f,
                                std::numeric_limits<float>::quiet_NaN()};
  const Attrs to_int8 = {{"Tout", DType::kInt8}}, to_int32 = {{"Tout", DType::kInt32}};
  ExpectOutputs({"StochasticCastToInt", WithStream(H({13}, x)), to_int8},
                {I8({13}, {0, 0, 1, -1, 2, 127, -128, 8, 0, 1, -1, 3, 0})});
  ExpectOutputs({"StochasticCastToInt", WithStream(H({13}, x)), to_int32},
                {I({13}, {0, 0, 1, -1, 2, 301, -40000, 7, 0, 1, -1, 4, 0})});
  ExpectOutputs({"StochasticCastToInt", WithStream(F({13}, x)), to_int8},
                {I8({13}, {0, 0, 1, -1, 2, 127, -128, 7, 0, 1, 0, 4, 0})});
  // Vectors of 8 floats share a block of the stream.
  ExpectOutputs({"StochasticCastToInt", WithStream(F({13}, x)), to_int32},
                {I({13}, {0, -1, 1, -1, 2, 301, -40000, 8, 0, 1, -1, 3, 0})});
  // Vectors of 4 doubles share a block, but only while there are 8 more elements.
  ExpectOutputs(
      {"StochasticCastToInt",
       WithStream(D({13}, {.5, -.5, 1.25, -1.25, 2, 300.5, -40000.5, 7.75, .1, .9, -.9, 3.5, .5})),
       to_int32},
      {I({13}, {0, -1, 1, -1, 2, 301, -40000, 8, 0, 1, -1, 3, 1})});
}

TEST(StochasticCastToInt, Saturates) {
  const float inf = std::numeric_limits<float>::infinity();
  ExpectOutputs({"StochasticCastToInt",
                 WithStream(F({4}, {3e9f, -3e9f, inf, -inf})),
                 {{"Tout", DType::kInt32}}},
                {I({4}, {2147483647, -2147483647 - 1, 2147483647, -2147483647 - 1})});
  ExpectOutputs(
      {"StochasticCastToInt", WithStream(H({2}, {40000, -inf})), {{"Tout", DType::kInt16}}},
      {I16({2}, {32767, -32768})});
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests EditDistance. The expected numbers are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(EditDistance, OfSequences) {
  ExpectOutputs(
      {"EditDistance",
       {L({3, 2}, {0, 0, 0, 1, 1, 0}), S({3}, {"a", "b", "c"}), L({2}, {3, 2}),
        L({4, 2}, {0, 0, 1, 0, 1, 1, 2, 0}), S({4}, {"a", "c", "d", "e"}), L({2}, {3, 2})},
       {{"normalize", true}}},
      {F({3}, {1, 0.5f, 1})});
  ExpectOutputs(
      {"EditDistance",
       {L({3, 2}, {0, 0, 0, 1, 1, 0}), S({3}, {"a", "b", "c"}), L({2}, {3, 2}),
        L({4, 2}, {0, 0, 1, 0, 1, 1, 2, 0}), S({4}, {"a", "c", "d", "e"}), L({2}, {3, 2})},
       {{"normalize", false}}},
      {F({3}, {1, 1, 1})});
  ExpectOutputs({"EditDistance",
                 {L({3, 2}, {0, 0, 0, 1, 2, 0}), S({3}, {"a", "b", "c"}), L({2}, {3, 2}),
                  L({1, 2}, {0, 0}), S({1}, {"a"}), L({2}, {3, 2})},
                 {{"normalize", true}}},
                {F({3}, {1, 0, INFINITY})});
  ExpectOutputs({"EditDistance",
                 {L({3, 2}, {0, 0, 0, 1, 2, 0}), I({3}, {1, 2, 3}), L({2}, {3, 2}),
                  L({1, 2}, {0, 0}), I({1}, {1}), L({2}, {4, 2})},
                 {{"normalize", false}}},
                {F({4}, {1, 0, 1, 0})});
  ExpectOutputs(
      {"EditDistance",
       {L({6, 2}, {0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5}), S({6}, {"k", "i", "t", "t", "e", "n"}),
        L({2}, {1, 6}), L({7, 2}, {0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6}),
        S({7}, {"s", "i", "t", "t", "i", "n", "g"}), L({2}, {1, 7})},
       {{"normalize", false}}},
      {F({1}, {3})});
}

TEST(EditDistance, Mistakes) {
  OpCall{"EditDistance",
         {L({3, 2}, {0, 0, 0, 1, 2, 0}), I({2}, {1, 2}), L({2}, {3, 2}), L({1, 2}, {0, 0}),
          I({1}, {1}), L({2}, {3, 2})},
         {{"normalize", false}}}
      .ExpectError("their shapes are");
  OpCall{"EditDistance",
         {L({3, 2}, {0, 0, 0, 1, 3, 0}), I({3}, {1, 2, 3}), L({2}, {3, 2}), L({1, 2}, {0, 0}),
          I({1}, {1}), L({2}, {3, 2})},
         {{"normalize", false}}}
      .ExpectError("hypothesis_indices[2,0] = 3");
  OpCall{"EditDistance",
         {L({3, 1}, {0, 1, 2}), I({3}, {1, 2, 3}), L({1}, {3}), L({1, 1}, {0}), I({1}, {1}),
          L({1}, {3})},
         {{"normalize", false}}}
      .ExpectError("rank at least 2");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests running sums of exponentials, NextAfter and bit counts. The expected numbers are those of
// TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(Scan, CumulativeLogsumexp) {
  ExpectOutputs({"CumulativeLogsumexp",
                 {F({2, 3}, {0, 1, -2, 3, -INFINITY, 0.5f}), I({}, {1})},
                 {{"exclusive", false}, {"reverse", false}}},
                {F({2, 3}, {0, 1.3132617f, 1.3490123f, 3, 3, 3.0788898f})}, 1e-06);
  ExpectOutputs({"CumulativeLogsumexp",
                 {F({2, 3}, {0, 1, -2, 3, -INFINITY, 0.5f}), I({}, {1})},
                 {{"exclusive", false}, {"reverse", true}}},
                {F({2, 3}, {1.3490121f, 1.0485873f, -2, 3.0788898f, 0.5f, 0.5f})}, 1e-06);
  ExpectOutputs({"CumulativeLogsumexp",
                 {F({2, 3}, {0, 1, -2, 3, -INFINITY, 0.5f}), I({}, {1})},
                 {{"exclusive", true}, {"reverse", false}}},
                {F({2, 3}, {-INFINITY, 0, 1.3132617f, -INFINITY, 3, 3})}, 1e-06);
  ExpectOutputs({"CumulativeLogsumexp",
                 {F({2, 3}, {0, 1, -2, 3, -INFINITY, 0.5f}), I({}, {1})},
                 {{"exclusive", true}, {"reverse", true}}},
                {F({2, 3}, {1.0485873f, -2, -INFINITY, 0.5f, 0.5f, -INFINITY})}, 1e-06);
  ExpectOutputs({"CumulativeLogsumexp", {D({2, 3}, {0, 1, -2, 3, -INFINITY, 0.5}), I({}, {0})}},
                {D({2, 3}, {0, 1, -2, 3.048587351573742, 1, 0.5788897342925496})}, 1e-12);
}

TEST(NextAfter, Neighbours) {
  ExpectOutputs({"NextAfter", {F({6}, {0, 1, 1, -1, INFINITY, NAN}), F({6}, {1, 2, 1, 5, 0, 1})}},
                {F({6}, {1.4013e-45f, 1.0000001f, 1, -0.99999994f, 3.4028235e+38f, NAN})});
}

TEST(PopulationCount, Bits) {
  ExpectOutputs({"PopulationCount", {I({5}, {0, 1, 7, -1, -2147483648})}},
                {U8({5}, {0, 1, 3, 32, 1})});
  ExpectOutputs({"PopulationCount", {I8({4}, {0, 127, -1, -128})}}, {U8({4}, {0, 7, 8, 1})});
  ExpectOutputs({"PopulationCount", {L({3}, {0, -1, 1099511627776})}}, {U8({3}, {0, 64, 1})});
}

}  // namespace
}  // namespace penstock

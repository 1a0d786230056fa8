// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/testing/world.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(MergeTest, TwinsRunOnceButNoiseDoesNot) {
  World w;
  Node* x = w.Add("x", "Input");
  Node* y = w.Add("y", "Input");
  Node* a = w.Add("a", "Sum2", {{x, 0}, {y, 0}});
  Node* b = w.Add("b", "Sum2", {{y, 0}, {x, 0}});  // commutative
  w.Add("ab", "Sum2", {{a, 0}, {b, 0}});
  Node* n = w.Add("n", "Noise");
  Node* m = w.Add("m", "Noise");
  w.Add("nm", "Sum2", {{n, 0}, {m, 0}});
  const auto partitions = w.Compile({}, {"ab:0", "nm:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const Graph& p = (*partitions)[0].graph;
  EXPECT_EQ(CountOps(p, "Sum2"), 3);
  EXPECT_EQ(CountOps(p, "Noise"), 2);
  EXPECT_EQ(CountOps(p, "Input"), 2) << "two unnamed inputs are two inputs";
}

}  // namespace
}  // namespace penstock

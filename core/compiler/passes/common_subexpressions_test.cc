// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(MergeTest, TwinsRunOnceButNoiseDoesNot) {
  TestProgram program;
  Node* x = program.Add("x", "Input");
  Node* y = program.Add("y", "Input");
  Node* a = program.Add("a", "Sum2", {{x, 0}, {y, 0}});
  Node* b = program.Add("b", "Sum2", {{y, 0}, {x, 0}});  // commutative
  program.Add("ab", "Sum2", {{a, 0}, {b, 0}});
  Node* n = program.Add("n", "Noise");
  Node* m = program.Add("m", "Noise");
  program.Add("nm", "Sum2", {{n, 0}, {m, 0}});
  const auto partitions = program.Compile({}, {"ab:0", "nm:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const Graph& p = (*partitions)[0].graph;
  EXPECT_EQ(CountOps(p, "Sum2"), 3);
  EXPECT_EQ(CountOps(p, "Noise"), 2);
  EXPECT_EQ(CountOps(p, "Input"), 2) << "two unnamed inputs are two inputs";
}

}  // namespace
}  // namespace penstock

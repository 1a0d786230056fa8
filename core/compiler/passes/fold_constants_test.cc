// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

TEST(FoldTest, ConstantsAreComputedOnce) {
  TestProgram p;
  Node* one = p.Constant("one", {1, 2});
  Node* two = p.Constant("two", {10, 20});
  Node* sum = p.Add("sum", "Sum2", {{one, 0}, {two, 0}});
  p.Add("more", "Sum2", {{sum, 0}, {two, 0}});
  const auto partitions = p.Compile({}, {"more:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const Node* fetch = nullptr;
  for (const Node* node : (*partitions)[0].graph.nodes()) {
    if (node->op_name() == "_Fetch") fetch = node;
  }
  ASSERT_NE(fetch, nullptr);
  const Node* source = fetch->input(0).node;
  ASSERT_EQ(source->op_name(), "Const");
  EXPECT_THAT(source->attr<Tensor>("value")->flat<float>(), ElementsAre(21, 42));
  EXPECT_EQ(p.After("sweep").num_nodes(), 2);
}

TEST(FoldTest, ANodeThatFailsIsLeftToFailInTheStep) {
  TestProgram p;
  Node* one = p.Constant("one", {1});
  Node* two = p.Constant("two", {1, 2});
  p.Add("sum", "Sum2", {{one, 0}, {two, 0}});
  const auto partitions = p.Compile({}, {"sum:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_NE((*partitions)[0].graph.FindNode("sum"), nullptr);
}

TEST(FoldTest, WhatIsTooLargeIsNotTried) {
  TestProgram p;
  Node* huge = p.Add("huge", "Huge", {{p.Constant("one", {1}), 0}});
  p.Add("use", "Heavy", {{huge, 0}});
  const auto partitions = p.Compile({}, {"use:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_FALSE(HugeRan());
}

TEST(FoldTest, WhatMayNotRunStaysWhatItIs) {
  TestProgram p;
  Node* noise = p.Add("noise", "Noise");
  Node* two = p.Constant("two", {2});
  Node* after = p.Constant("after", {1}, {.after = {noise}});
  p.Add("sum", "Sum2", {{after, 0}, {two, 0}});   // must run after noise, or not at all
  p.Add("merge", "Merge", {{two, 0}, {two, 0}});  // only the step knows which input arrives
  Node* branch = p.Add("switch", "Switch", {{two, 0}, {noise, 0}});
  p.Add("shape", "Shape",
        {{branch, 1}});  // the shape is known, but the tensor may never be computed
  const auto partitions = p.Compile({}, {"sum:0", "merge:0", "shape:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  for (const char* kept : {"sum", "merge", "shape"}) {
    EXPECT_NE((*partitions)[0].graph.FindNode(kept), nullptr) << kept;
  }
}

TEST(FoldTest, AShapeThatInferenceKnowsIsAConstant) {
  TestProgram p;
  Node* x = p.Add("x", "Input");
  Node* huge = p.Add("huge", "Huge", {{x, 0}});
  p.Add("shape", "Shape", {{huge, 0}});
  p.Add("unknown", "Shape", {{x, 0}});
  ASSERT_TRUE(p.Compile({}, {"shape:0", "unknown:0"}).ok());
  const Graph& folded = p.After("sweep");
  EXPECT_EQ(folded.FindNode("shape"), nullptr);
  EXPECT_NE(folded.FindNode("unknown"), nullptr);
  const Node* const constant = folded.FindNode("shape/folded");
  ASSERT_NE(constant, nullptr);
  EXPECT_THAT(constant->attr<Tensor>("value")->flat<int32_t>(), ElementsAre(1 << 20, 1 << 10));
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/testing/world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

TEST(FoldTest, ConstantsAreComputedOnce) {
  World w;
  Node* one = w.Constant("one", {1, 2});
  Node* two = w.Constant("two", {10, 20});
  Node* sum = w.Add("sum", "Sum2", {{one, 0}, {two, 0}});
  w.Add("more", "Sum2", {{sum, 0}, {two, 0}});
  const auto partitions = w.Compile({}, {"more:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const Node* fetch = nullptr;
  for (const Node* node : (*partitions)[0].graph.nodes()) {
    if (node->op_name() == "_Fetch") fetch = node;
  }
  ASSERT_NE(fetch, nullptr);
  const Node* source = fetch->input(0).node;
  ASSERT_EQ(source->op_name(), "Const");
  EXPECT_THAT(source->attr<Tensor>("value")->flat<float>(), ElementsAre(21, 42));
  EXPECT_EQ(w.After("sweep").num_nodes(), 2);
}

TEST(FoldTest, ANodeThatFailsIsLeftToFailInTheStep) {
  World w;
  Node* one = w.Constant("one", {1});
  Node* two = w.Constant("two", {1, 2});
  w.Add("sum", "Sum2", {{one, 0}, {two, 0}});
  const auto partitions = w.Compile({}, {"sum:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_NE((*partitions)[0].graph.FindNode("sum"), nullptr);
}

TEST(FoldTest, WhatIsTooLargeIsNotTried) {
  World w;
  Node* huge = w.Add("huge", "Huge", {{w.Constant("one", {1}), 0}});
  w.Add("use", "Heavy", {{huge, 0}});
  const auto partitions = w.Compile({}, {"use:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_FALSE(HugeRan());
}

TEST(FoldTest, WhatMayNotRunStaysWhatItIs) {
  World w;
  Node* noise = w.Add("noise", "Noise");
  Node* two = w.Constant("two", {2});
  Node* after = w.Constant("after", {1}, {.after = {noise}});
  w.Add("sum", "Sum2", {{after, 0}, {two, 0}});   // must run after noise, or not at all
  w.Add("merge", "Merge", {{two, 0}, {two, 0}});  // only the step knows which input arrives
  Node* branch = w.Add("switch", "Switch", {{two, 0}, {noise, 0}});
  w.Add("shape", "Shape",
        {{branch, 1}});  // the shape is known, but the tensor may never be computed
  const auto partitions = w.Compile({}, {"sum:0", "merge:0", "shape:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  for (const char* kept : {"sum", "merge", "shape"}) {
    EXPECT_NE((*partitions)[0].graph.FindNode(kept), nullptr) << kept;
  }
}

TEST(FoldTest, AShapeThatInferenceKnowsIsAConstant) {
  World w;
  Node* x = w.Add("x", "Input");
  Node* huge = w.Add("huge", "Huge", {{x, 0}});
  w.Add("shape", "Shape", {{huge, 0}});
  w.Add("unknown", "Shape", {{x, 0}});
  ASSERT_TRUE(w.Compile({}, {"shape:0", "unknown:0"}).ok());
  const Graph& folded = w.After("sweep");
  EXPECT_EQ(folded.FindNode("shape"), nullptr);
  EXPECT_NE(folded.FindNode("unknown"), nullptr);
  const Node* const constant = folded.FindNode("shape/folded");
  ASSERT_NE(constant, nullptr);
  EXPECT_THAT(constant->attr<Tensor>("value")->flat<int32_t>(), ElementsAre(1 << 20, 1 << 10));
}

}  // namespace
}  // namespace penstock

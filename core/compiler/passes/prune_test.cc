// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(PruneTest, KeepsOnlyWhatFeedsAndFetchesNeed) {
  // The example in a figure of TensorFlow's white paper: with feed b and fetch f, the nodes d and e
  // do not run.
  TestProgram p;
  Node* a = p.Add("a", "Input");
  Node* b = p.Add("b", "Heavy", {{a, 0}});
  Node* c = p.Add("c", "Heavy", {{b, 0}});
  Node* d = p.Add("d", "Heavy", {{a, 0}});
  p.Add("e", "Heavy", {{d, 0}});
  p.Add("f", "Heavy", {{c, 0}});
  const auto partitions = p.Compile({"b:0"}, {"f:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 1u);
  const Graph& g = (*partitions)[0].graph;
  for (const char* gone : {"a", "b", "d", "e"}) EXPECT_EQ(g.FindNode(gone), nullptr) << gone;
  for (const char* kept : {"c", "f"}) EXPECT_NE(g.FindNode(kept), nullptr) << kept;
  EXPECT_EQ(CountOps((*partitions)[0].graph, "_Feed"), 1);
  EXPECT_EQ(CountOps((*partitions)[0].graph, "_Fetch"), 1);
}

TEST(PruneTest, WrongNamesAreNamed) {
  const auto error = [](std::vector<std::string> feeds, std::vector<std::string> fetches,
                        std::vector<std::string> targets) {
    TestProgram p;
    p.Add("a", "Input");
    return std::string(p.Compile(feeds, fetches, targets).status().message());
  };
  EXPECT_THAT(error({"x:0"}, {"a:0"}, {}), HasSubstr("unable to find feed output x:0"));
  EXPECT_THAT(error({"a:1"}, {"a:0"}, {}), HasSubstr("unable to find feed output a:1"));
  EXPECT_THAT(error({}, {"a:7"}, {}), HasSubstr("FetchOutputs node a:7: not found"));
  EXPECT_THAT(error({}, {}, {"p", "q"}), HasSubstr("target nodes not found: p q"));
  EXPECT_THAT(error({}, {}, {}), HasSubstr("at least one target"));
  EXPECT_THAT(error({"a:0"}, {"a:0"}, {}), HasSubstr("both fed and fetched"));
  EXPECT_THAT(error({"a:0", "a:0"}, {}, {"a"}), HasSubstr("fed twice"));
}

TEST(PruneTest, NamesThatNearlyMatchAreSuggested) {
  const auto error = [](std::vector<std::string> feeds, std::vector<std::string> fetches,
                        std::vector<std::string> targets) {
    TestProgram p;
    p.Add("images", "Input");
    return std::string(p.Compile(feeds, fetches, targets).status().message());
  };
  EXPECT_THAT(error({"image:0"}, {"images:0"}, {}), HasSubstr("image:0; did you mean 'images'?"));
  EXPECT_THAT(error({}, {"imagse:0"}, {}), HasSubstr("not found; did you mean 'images'?"));
  EXPECT_THAT(error({}, {}, {"Image"}), HasSubstr("not found: Image; did you mean 'images'?"));
  EXPECT_THAT(error({}, {"images:1"}, {}), ::testing::Not(HasSubstr("did you mean")));
}

TEST(PruneTest, TheRuntimesOwnOpsAreNotForPrograms) {
  TestProgram p;
  p.Add("mine", "_Feed", {}, {.attrs = {{"index", 0}, {"T", DType::kFloat}}});
  const Status status = p.Compile({}, {"mine:0"}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("node 'mine': op _Feed"));
}

TEST(PruneTest, NothingInsideALoopIsFedOrFetched) {
  const struct {
    std::vector<std::string> feeds, fetches, targets;
    std::string error;
  } kCases[] = {
      {{}, {"sum:0"}, {}, "Fetch 'sum:0' is inside the loop 'f'"},
      {{}, {"enter:0"}, {}, "Fetch 'enter:0' is inside the loop 'f'"},
      {{"plus:0"}, {"exit:0"}, {}, "Feed 'plus:0' is inside the loop 'f'"},
      {{}, {}, {"next"}, "Target 'next' is inside the loop 'f'"},
      {{"x:0"}, {"exit:0"}, {"k"}, ""},
  };
  for (const auto& c : kCases) {
    LoopTestProgram p;
    EXPECT_THAT(p.Compile(c.feeds, c.fetches, c.targets).status().ToString(),
                HasSubstr(c.error.empty() ? "OK" : c.error));
  }
}

TEST(PruneTest, WhatWaitsForAFedPlaceholderWaitsForTheFeed) {
  TestProgram p;
  Node* before = p.Add("before", "Noise");
  Node* fed = p.Add("fed", "Ask", {}, {.after = {before}});
  Node* other = p.Add("other", "Input");
  p.Add("f", "Heavy", {{p.Constant("one", {1}), 0}}, {.after = {fed, other}});
  const auto partitions = p.Compile({"fed:0", "other:0"}, {"f:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const Graph& g = (*partitions)[0].graph;
  EXPECT_EQ(g.FindNode("fed"), nullptr) << "a placeholder that runs is an error";
  EXPECT_EQ(g.FindNode("before"), nullptr) << "nothing of the placeholder is needed";
  EXPECT_NE(g.FindNode("other"), nullptr) << "may have effects that f waits for";
  ASSERT_EQ(CountOps(g, "_Feed"), 1);
  bool waits = false;
  for (const Node* control : g.FindNode("f")->control_inputs()) {
    waits |= control->op_name() == "_Feed";
  }
  EXPECT_TRUE(waits);
}

TEST(PruneTest, AFetchNeedsTheFeedThatItWaitsFor) {
  TestProgram p;
  Node* fed = p.Add("fed", "Ask", {}, {.after = {p.Add("before", "Input")}});
  p.Add("f", "Heavy", {{p.Constant("one", {1}), 0}}, {.after = {fed}});
  p.options.feeds = {{.node = "fed"}, {.node = "before"}};
  p.options.fetches = {{.node = "f"}};
  const auto needed = FeedsOfFetches(p.graph, p.options);
  ASSERT_TRUE(needed.ok()) << needed.status();
  EXPECT_EQ(*needed, std::vector<std::vector<int>>{{0}});
}

TEST(PruneTest, OfResultsApartOnlyWhatIsUsedRuns) {
  TestProgram p;
  Node* a = p.Add("a", "Noise");
  Node* b = p.Add("b", "Noise");
  Node* effect = p.Add("effect", "Noise");
  Node* both = p.Add("both", "Pair", {{a, 0}, {b, 0}},
                     {.attrs = {{"_results_apart", true}}, .after = {effect}});
  p.Add("use", "Heavy", {{both, 1}});
  p.Add("after", "Heavy", {{both, 1}}, {.after = {both}});
  const auto nodes = [&](const std::vector<std::string>& feeds, const std::string& fetch) {
    const auto partitions = p.Compile(feeds, {fetch});
    EXPECT_TRUE(partitions.ok()) << partitions.status();
    std::string found;
    for (const char* name : {"a", "b", "effect", "both"}) {
      if (p.After("prune").FindNode(name) != nullptr) StrAppend(&found, name, " ");
    }
    return found;
  };
  EXPECT_EQ(nodes({}, "use:0"), "b ");
  EXPECT_EQ(nodes({}, "both:0"), "a ");
  EXPECT_EQ(nodes({}, "after:0"), "a b effect both ");
  EXPECT_EQ(nodes({"both:1"}, "use:0"), "");
}

// The order of the copies is depth first: see Pruner::Visit.
TEST(PruneTest, WeightsAreSentInTheOrderOfTheLayers) {
  TestProgram p;
  Node* y = p.Add("x", "Input", {}, {.device = kWorker});
  std::vector<Node*> weights;
  for (const char* name : {"w2", "w0", "w1"}) {  // added in another order
    weights.push_back(p.Add(name, "Var", {}, {.device = kPs}));
  }
  for (Node* weight : {weights[1], weights[2], weights[0]}) {
    Node* read = p.Add(weight->name() + "_read", "Identity", {{weight, 0}}, {.device = kPs});
    y = p.Add(weight->name() + "_y", "Product", {{y, 0}, {read, 0}}, {.device = kWorker});
  }
  const auto partitions = p.Compile({}, {}, {y->name()});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const auto order = (*partitions)[0].graph.TopologicalOrder();
  ASSERT_TRUE(order.ok());
  std::string sent;
  for (const Node* node : *order) {
    if (node->op_name() == "_Send") StrAppend(&sent, node->input(0).node->name(), " ");
  }
  EXPECT_EQ(sent, "w0_read w1_read w2_read ");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/graph/reachability.h"

#include <random>
#include <string>
#include <vector>

#include "core/graph/testing/test_ops.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

const Node* All(const Node& node, int input) { return node.input(input).node; }

// Returns, by node id, whether a walk from `from` reaches the node.
std::vector<bool> WalkFrom(const Node* from, int max_id) {
  std::vector<bool> seen(max_id);
  std::vector<const Node*> stack = {from};
  while (!stack.empty()) {
    const Node* const node = stack.back();
    stack.pop_back();
    if (seen[node->id()]) continue;
    seen[node->id()] = true;
    for (const OutEdge& edge : node->out_edges()) stack.push_back(edge.dst);
    for (const Node* next : node->control_outputs()) stack.push_back(next);
  }
  return seen;
}

TEST(ReachabilityTest, FindsWhatWalksFind) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    Graph graph(TestOps());
    std::vector<Node*> nodes;
    for (int i = 0; i < 60; ++i) {
      nodes.push_back(*graph.AddNode({.name = StrCat("n", i), .op = "NoOp"}));
    }
    // Some edges lead back, so that there are loops, also within loops.
    for (int i = 0; i < 70; ++i) {
      graph.AddControlEdge(nodes[random() % nodes.size()], nodes[random() % nodes.size()]);
    }
    Reachability reach(graph, All);
    std::vector<Reachability::Seed> seeds;
    for (size_t i = 0; i < nodes.size(); ++i) seeds.push_back({nodes[i], i});
    reach.Find(seeds);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::vector<bool> walked = WalkFrom(nodes[i], graph.max_id());
      for (const Node* node : nodes) {
        ASSERT_EQ(reach.Of(*node).test(i), walked[node->id()]) << i << " " << node->name();
        if (walked[node->id()]) {
          ASSERT_LE(reach.Order(*nodes[i]), reach.Order(*node));
        }
      }
    }
    reach.Find({seeds.data(), 1});
    for (const Node* node : nodes) EXPECT_LE(reach.Of(*node).count(), 1u) << "seeds are forgotten";
  }
}

// Recursive walks would need more stack than a thread has.
TEST(ReachabilityTest, DeepGraphs) {
  Graph graph(TestOps());
  Node* const first = *graph.AddNode({.name = "first", .op = "NoOp"});
  Node* last = first;
  for (int i = 0; i < 300'000; ++i) {
    Node* const next = *graph.AddNode({.name = StrCat("n", i), .op = "NoOp"});
    graph.AddControlEdge(last, next);
    last = next;
  }
  Reachability reach(graph, All);
  const Reachability::Seed seed = {first, 3};
  reach.Find({&seed, 1});
  EXPECT_TRUE(reach.Of(*last).test(3));
}

}  // namespace
}  // namespace penstock

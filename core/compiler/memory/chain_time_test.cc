// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/chain_time.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/compiler/memory/node_ancestors.h"
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

struct Steps : TestProgram {
  Node* Run(const std::string& op, std::vector<Endpoint> inputs, const char* device = kWorker) {
    order.push_back(Add(StrCat("n", order.size()), op, std::move(inputs)));
    graph.set_assigned_device(order.back(), device);
    return order.back();
  }
  ChainTime Time() const { return {MemoryModel(graph, CostTable()), order, 0}; }

  std::vector<Node*> order;
};

TEST(ChainTimeTest, NodesBesideTheChainRunWithinPhases) {
  Steps s;
  Node* const a = s.Run("Noise", {});
  Node* const b = s.Run("Heavy", {{a, 0}});
  Node* const c = s.Run("Heavy", {{b, 0}});
  Node* const beside = s.Run("Heavy", {{a, 0}});
  Node* const end = s.Run("Sum2", {{c, 0}, {beside, 0}});
  Node* const free = s.Run("Noise", {});
  const ChainTime time = s.Time();
  EXPECT_EQ(time.num_phases(), 9);
  EXPECT_EQ(time.FirstPhase(*b), 3);
  EXPECT_EQ(time.LastPhase(*b), 3);
  EXPECT_EQ(time.FirstPhase(*beside), 2) << "after a";
  EXPECT_EQ(time.LastPhase(*beside), 6) << "before end";
  EXPECT_EQ(time.FirstPhase(*free), 0);
  EXPECT_EQ(time.LastPhase(*free), 8);
  EXPECT_EQ(&time.NodeOf(2), b);
  EXPECT_EQ(&time.NodeOf(3), b);
  EXPECT_EQ(&time.NodeOf(8), end);
  EXPECT_TRUE(time.Precedes(*a, *beside));
  EXPECT_TRUE(time.Precedes(*beside, *end));
  EXPECT_FALSE(time.Precedes(*beside, *c));
  EXPECT_FALSE(time.Precedes(*a, *a));
  EXPECT_FALSE(time.Precedes(*free, *end));
}

TEST(ChainTimeTest, TheChainIsOfOneDeviceButMayPassOthers) {
  Steps s;
  Node* const a = s.Run("Noise", {});
  Node* const there = s.Run("Heavy", {{a, 0}}, kWorker1);
  Node* const b = s.Run("Heavy", {{there, 0}});
  const ChainTime time = s.Time();
  EXPECT_EQ(time.num_phases(), 5);
  EXPECT_EQ(time.FirstPhase(*there), 2);
  EXPECT_EQ(time.LastPhase(*there), 2);
  EXPECT_TRUE(time.Precedes(*a, *b));
}

TEST(ChainTimeTest, PrecedesNeverClaimsTooMuch) {
  std::mt19937 random(1);
  int claimed = 0;
  for (int round = 0; round < 50; ++round) {
    Steps s;
    s.Run("Noise", {});
    const auto any = [&] { return Endpoint{s.order[random() % s.order.size()], 0}; };
    for (int i = 0; i < 30; ++i) {
      const char* const device = random() % 3 == 0 ? kWorker1 : kWorker;
      s.Run("Sum2", {any(), any()}, device);
    }
    const ChainTime time = s.Time();
    NodeAncestors ancestors(s.order, {s.order.begin(), s.order.end()});
    ancestors.Find();
    for (const Node* a : s.order) {
      EXPECT_LE(time.FirstPhase(*a), time.LastPhase(*a));
      for (const Node* b : s.order) {
        if (!time.Precedes(*a, *b)) continue;
        ++claimed;
        EXPECT_TRUE(ancestors.Precedes(*a, *b)) << a->name() << " " << b->name();
      }
    }
  }
  EXPECT_GT(claimed, 1000);
}

TEST(ChainTimeTest, AMergeWaitsForWhatAllItsInputsWaitFor) {
  Steps s;
  Node* const both = s.Run("Noise", {});
  Node* const a = s.Run("Heavy", {{both, 0}});
  Node* const b = s.Run("Heavy", {{both, 0}});
  Node* const merge = s.Run("Merge", {{a, 0}, {b, 0}});
  Node* const control = s.Run("Noise", {});
  Node* const last = s.Run("Heavy", {{merge, 0}});
  s.graph.AddControlEdge(control, last);
  NodeAncestors ancestors(s.order, {s.order.begin(), s.order.end()});
  ancestors.Find();
  EXPECT_TRUE(ancestors.Precedes(*both, *last));
  EXPECT_FALSE(ancestors.Precedes(*a, *merge));
  EXPECT_FALSE(ancestors.Precedes(*b, *last));
  EXPECT_TRUE(ancestors.Precedes(*control, *last));
  const ChainTime time = s.Time();
  EXPECT_EQ(time.num_phases(), 5) << "no chain leads through a Merge";
  EXPECT_FALSE(time.Precedes(*a, *merge));
  EXPECT_FALSE(time.Precedes(*b, *merge));
}

// Returns, by id, the positions of nodes in a random order. A Merge runs after any one input.
std::vector<int> RandomPositions(const Steps& s, std::mt19937* random) {
  std::vector<Node*> left = s.order;
  std::vector<int> at(s.graph.max_id(), -1);
  for (int position = 0; !left.empty(); ++position) {
    std::ranges::shuffle(left, *random);
    const auto ready = std::ranges::find_if(left, [&](const Node* node) {
      const auto ended = [&](const Endpoint& in) { return at[in.node->id()] >= 0; };
      return node->op().flow == FlowOp::kMerge ? std::ranges::any_of(node->inputs(), ended)
                                               : std::ranges::all_of(node->inputs(), ended);
    });
    at[(*ready)->id()] = position;
    left.erase(ready);
  }
  return at;
}

TEST(ChainTimeTest, NothingIsClaimedThatAMergeDoesNotWaitFor) {
  std::mt19937 random(2);
  int claimed = 0;
  for (int round = 0; round < 50; ++round) {
    Steps s;
    s.Run("Noise", {});
    const auto any = [&] { return Endpoint{s.order[random() % s.order.size()], 0}; };
    for (int i = 0; i < 30; ++i) s.Run(random() % 3 == 0 ? "Merge" : "Sum2", {any(), any()});
    const ChainTime time = s.Time();
    NodeAncestors ancestors(s.order, {s.order.begin(), s.order.end()});
    ancestors.Find();
    for (int i = 0; i < 20; ++i) {
      const std::vector<int> at = RandomPositions(s, &random);
      for (const Node* a : s.order) {
        for (const Node* b : s.order) {
          if (!time.Precedes(*a, *b) && !ancestors.Precedes(*a, *b)) continue;
          ++claimed;
          EXPECT_LT(at[a->id()], at[b->id()]) << a->name() << " " << b->name();
        }
      }
    }
  }
  EXPECT_GT(claimed, 1000);
}

}  // namespace
}  // namespace penstock

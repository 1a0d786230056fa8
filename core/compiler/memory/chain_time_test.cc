// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/chain_time.h"

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

}  // namespace
}  // namespace penstock

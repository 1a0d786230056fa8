// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/order_chain.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Chain : TestProgram {
  Node* Run(const std::string& name, const std::string& op, std::vector<Endpoint> inputs = {}) {
    order.push_back(Add(name, op, std::move(inputs)));
    return order.back();
  }
  // Adds to the chain the nodes for which `kept` is true; all nodes if `kept` is empty.
  void Keep(const std::vector<bool>& kept = {}) {
    OrderChain chain(&graph, order);
    OrderChain::Ends ends;
    for (size_t i = 0; i < order.size(); ++i) {
      chain.Visit(*order[i]);
      if (kept.empty() || kept[i]) chain.Append(order[i], &ends);
    }
  }
  // Returns whether a path leads from `from` to `to`.
  bool Leads(const Node* from, const Node* to) const {
    std::vector<bool> reached(graph.max_id());
    reached[from->id()] = true;
    for (const Node* node : order) {
      for (const Endpoint& in : node->inputs()) {
        if (reached[in.node->id()]) reached[node->id()] = true;
      }
      for (const Node* in : node->control_inputs()) {
        if (reached[in->id()]) reached[node->id()] = true;
      }
    }
    return reached[to->id()];
  }

  std::vector<Node*> order;
};

TEST(OrderChainTest, EachWaitsForTheOneBefore) {
  Chain c;
  Node* const a = c.Run("a", "Noise");
  Node* const b = c.Run("b", "Noise");
  Node* const d = c.Run("d", "Noise");
  c.Keep();
  EXPECT_THAT(a->control_inputs(), IsEmpty());
  EXPECT_THAT(b->control_inputs(), ElementsAre(a));
  EXPECT_THAT(d->control_inputs(), ElementsAre(b));
}

TEST(OrderChainTest, WhatIsWaitedForDoesNotWait) {
  Chain c;
  Node* const wait = c.Run("wait", "Unstage");
  Node* const after = c.Run("after", "Heavy", {{wait, 0}});
  Node* const before = c.Run("before", "Noise");
  Node* const stage = c.Run("stage", "Stage", {{before, 0}});
  Node* const last = c.Run("last", "Noise");
  c.Keep();
  EXPECT_FALSE(c.Leads(wait, stage)) << "the step would never end";
  EXPECT_TRUE(c.Leads(after, last));
  EXPECT_TRUE(c.Leads(before, last));
}

// An edge that the chain has added leads on to the Stage.
TEST(OrderChainTest, NorByWayOfOthers) {
  Chain c;
  Node* const wait = c.Run("wait", "Unstage");
  c.Run("after", "Heavy", {{wait, 0}});
  Node* const other = c.Run("other", "Noise");
  Node* const before = c.Run("before", "Noise");
  Node* const stage = c.Run("stage", "Stage", {{before, 0}});
  c.Keep();
  EXPECT_TRUE(c.Leads(wait, other));
  EXPECT_FALSE(c.Leads(wait, stage));
}

TEST(OrderChainTest, OrderedByTheGraphTheyStayOrdered) {
  Chain c;
  Node* const wait = c.Run("wait", "Unstage");
  Node* const after = c.Run("after", "Heavy", {{wait, 0}});
  Node* const stage = c.Run("stage", "Stage", {{after, 0}});
  Node* const last = c.Run("last", "Noise");
  c.Keep();
  EXPECT_TRUE(c.Leads(wait, stage));
  EXPECT_TRUE(c.Leads(stage, last));
}

bool MayWait(const Node& node) { return node.op_name() == "Stage" || node.op_name() == "Unstage"; }

// A graph of 40 nodes, of which a fifth may wait.
Chain RandomChain(std::mt19937* random) {
  Chain c;
  std::vector<Endpoint> values = {{c.Run("first", "Noise"), 0}};
  for (int i = 0; i < 40; ++i) {
    const Endpoint value = values[(*random)() % values.size()];
    const std::string name = StrCat("n", i);
    switch ((*random)() % 10) {
      case 0:
        c.Run(name, "Stage", {value});
        continue;
      case 1:
        values.push_back({c.Run(name, "Unstage"), 0});
        continue;
      case 2:
      case 3:
        values.push_back({c.Run(name, "Noise"), 0});
        continue;
      default:
        values.push_back({c.Run(name, "Heavy", {value}), 0});
    }
  }
  return c;
}

std::vector<std::pair<const Node*, const Node*>> WaysBetweenWaiting(const Chain& c) {
  std::vector<std::pair<const Node*, const Node*>> ways;
  for (const Node* a : c.order) {
    for (const Node* b : c.order) {
      if (a != b && MayWait(*a) && MayWait(*b) && c.Leads(a, b)) ways.emplace_back(a, b);
    }
  }
  return ways;
}

TEST(OrderChainTest, NoNewWayBetweenNodesThatMayWait) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    Chain c = RandomChain(&random);
    const auto before = WaysBetweenWaiting(c);
    std::vector<bool> kept;
    for (size_t i = 0; i < c.order.size(); ++i) kept.push_back(random() % 4 != 0);
    c.Keep(kept);
    EXPECT_EQ(WaysBetweenWaiting(c), before);
    EXPECT_TRUE(c.graph.Validate().ok());
  }
}

// Adds a _Send or _Recv that exchanges a tensor with the client of a partial run.
Node* AddClientEnd(Chain* c, const std::string& op, std::vector<Endpoint> inputs) {
  Attrs attrs = {{"tensor_name", std::string("t")},
                 {"send_device", std::string(kWorker)},
                 {"send_device_incarnation", int64_t{0}},
                 {"recv_device", std::string(kWorker)},
                 {"client_terminated", true}};
  attrs[inputs.empty() ? "tensor_type" : "T"] = DType::kFloat;
  c->order.push_back(c->Add(op, op, std::move(inputs), {.attrs = std::move(attrs)}));
  return c->order.back();
}

// In a partial run, the client may give the feed only after it has the fetch.
TEST(OrderChainTest, AFetchDoesNotWaitForAFeed) {
  Chain c;
  Node* const feed = AddClientEnd(&c, "_Recv", {});
  Node* const after = c.Run("after", "Heavy", {{feed, 0}});
  Node* const before = c.Run("before", "Noise");
  Node* const fetch = AddClientEnd(&c, "_Send", {{before, 0}});
  Node* const last = c.Run("last", "Noise");
  c.Keep();
  EXPECT_FALSE(c.Leads(feed, fetch)) << "the step would never end";
  EXPECT_TRUE(c.Leads(after, last));
  EXPECT_TRUE(c.Leads(before, last));
}

}  // namespace
}  // namespace penstock

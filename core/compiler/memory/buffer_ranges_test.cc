// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/buffer_ranges.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// A variable of 4000 bytes that is read and updated many times.
struct ReadAndUpdated : TestProgram {
  ReadAndUpdated(int reads, int updates) {
    const Attrs attrs = {{"dtype", EdgeType{DType::kFloat}}, {"shape", PartialShape({1000})}};
    Node* const variable = Put(Add("variable", "Var", {}, {.attrs = attrs}));
    Node* const by = Put(Add("by", "Noise"));
    for (int i = 0; i < std::max(reads, updates); ++i) {
      if (i < reads) {
        Node* const read = Put(Add(StrCat("read", i), "Identity", {{variable, 0}}));
        Put(Add(StrCat("used", i), "Use", {{read, 0}}));
      }
      if (i < updates) Put(Add(StrCat("update", i), "Update", {{variable, 0}, {by, 0}}));
    }
  }
  Node* Put(Node* node) {
    graph.set_assigned_device(node, kWorker);
    position.resize(node->id() + 1);
    position[node->id()] = static_cast<int>(order.size());
    order.push_back(node);
    return node;
  }
  // Returns the number of copies that may be made, and counts the calls of `precedes`.
  template <class Precedes>
  int NumCopies(Precedes precedes, int64_t* calls) const {
    const CostTable costs;
    const MemoryModel model(graph, costs);
    const MemoryProfile profile = model.Profile(order);
    const BufferRanges ranges(model, profile, /*bytes_min=*/0);
    const auto taken = ranges.Get([&](const Node& a, const Node& b) {
      ++*calls;
      return precedes(a, b);
    });
    return static_cast<int>(std::ranges::count_if(taken, [](const BufferRange& range) {
      return range.maker->name().starts_with("update") && range.bytes == 4000;
    }));
  }

  std::vector<Node*> order;
  std::vector<int> position;  // by node id
};

TEST(BufferRangesTest, CopiesTakeFewCalls) {
  const ReadAndUpdated s(/*reads=*/1000, /*updates=*/1000);
  const int64_t calls_max = 12 * 1000 * 1000;
  int64_t calls = 0;
  EXPECT_EQ(s.NumCopies([&](const Node& a,
                            const Node& b) { return s.position[a.id()] < s.position[b.id()]; },
                        &calls),
            0)
      << "each reader runs before the next update";
  EXPECT_LE(calls, calls_max);
  calls = 0;
  EXPECT_EQ(s.NumCopies([](const Node&, const Node&) { return false; }, &calls), 1000);
  EXPECT_LE(calls, calls_max);
  calls = 0;
  const auto snapshots_first = [](const Node& a, const Node& b) {
    return a.name().starts_with("read") && b.name().starts_with("update");
  };
  EXPECT_EQ(s.NumCopies(snapshots_first, &calls), 1000);
  EXPECT_LE(calls, calls_max);
}

// Each node writes to the memory of the one before. The time is linear in the number of nodes.
TEST(BufferRangesTest, AChainInOneBufferTakesFewCalls) {
  constexpr int kNodes = 2000;
  TestProgram s;
  CostTable costs;
  std::vector<Node*> order = {s.Add("n0", "Noise")};
  for (int i = 1; i < kNodes; ++i) {
    const NodeOptions one = {.attrs = {{"N", int64_t{1}}}};
    order.push_back(s.Add(StrCat("n", i), "AddN", {{order.back(), 0}}, one));
  }
  for (Node* node : order) {
    s.graph.set_assigned_device(node, kWorker);
    costs.RecordOutput(node->name(), 0, 1000);
  }
  const MemoryModel model(s.graph, costs);
  const MemoryProfile profile = model.Profile(order);
  int64_t calls = 0;
  const auto ranges =
      BufferRanges(model, profile, 0).Get([&](const Node& a, const Node& b) {
        ++calls;
        return a.id() < b.id();
      });
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].maker, order.front());
  EXPECT_EQ(std::ranges::count(ranges[0].users, order.back()), 1);
  EXPECT_LE(calls, 4 * kNodes);
}

// Only the first update after the snapshots copies the value, whichever the order of readers.
TEST(BufferRangesTest, TheFirstUpdateCopies) {
  const ReadAndUpdated s(/*reads=*/1, /*updates=*/5);
  int64_t calls = 0;
  const auto readers_last = [&](const Node& a, const Node& b) {
    return !a.name().starts_with("used") && !b.name().starts_with("used") &&
           s.position[a.id()] < s.position[b.id()];
  };
  EXPECT_EQ(s.NumCopies(readers_last, &calls), 1);
}

}  // namespace
}  // namespace penstock

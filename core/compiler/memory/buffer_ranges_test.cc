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

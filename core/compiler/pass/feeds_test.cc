// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/feeds.h"

#include <string>
#include <vector>

#include "core/compiler/testing/world.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Needed = std::vector<std::vector<int>>;

class FeedsOfFetchesTest : public testing::Test {
 protected:
  Needed Of(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches) {
    for (const std::string& feed : feeds) w_.options.feeds.push_back({.node = feed, .index = 0});
    for (const std::string& fetch : fetches) {
      w_.options.fetches.push_back({.node = fetch, .index = 0});
    }
    const auto needed = FeedsOfFetches(w_.graph, w_.options);
    EXPECT_TRUE(needed.ok()) << needed.status();
    return needed.ok() ? *needed : Needed();
  }
  World w_;
};

TEST_F(FeedsOfFetchesTest, AFeedHidesWhatIsBehindIt) {
  Node* const a = w_.Add("a", "Input");
  Node* const b = w_.Add("b", "Heavy", {{a, 0}});
  Node* const c = w_.Add("c", "Heavy", {{b, 0}});
  Node* const d = w_.Add("d", "Sum2", {{c, 0}, {a, 0}});
  w_.Add("waits", "Input", {}, {.after = {d}});
  w_.Add("alone", "Input");
  EXPECT_EQ(Of({"b", "a"}, {"c", "d", "waits", "alone"}), (Needed{{0}, {0, 1}, {0, 1}, {}}));
}

TEST_F(FeedsOfFetchesTest, MoreFeedsThanAreFoundAtATime) {
  std::vector<std::string> feeds, fetches;
  for (int i = 0; i < 1200; ++i) {
    feeds.push_back(StrCat("in", i));
    fetches.push_back(StrCat("out", i));
    w_.Add(fetches[i], "Heavy", {{w_.Add(feeds[i], "Input"), 0}});
  }
  const Needed needed = Of(feeds, fetches);
  ASSERT_EQ(needed.size(), 1200u);
  for (int i = 0; i < 1200; ++i) EXPECT_EQ(needed[i], std::vector<int>{i});
}

// One walk per fetch would visit 100,000 times 50,000 nodes.
TEST_F(FeedsOfFetchesTest, ManyFetchesOfOneChain) {
  Node* last = w_.Add("in", "Input");
  std::vector<std::string> fetches;
  for (int i = 0; i < 100'000; ++i) {
    fetches.push_back(StrCat("n", i));
    last = w_.Add(fetches[i], "Heavy", {{last, 0}});
  }
  EXPECT_EQ(Of({"in"}, fetches), Needed(100'000, {0}));
}

}  // namespace
}  // namespace penstock

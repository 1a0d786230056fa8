// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/feeds.h"

#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Needed = std::vector<std::vector<int>>;

class FeedsOfFetchesTest : public testing::Test {
 protected:
  Needed Of(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches) {
    for (const std::string& feed : feeds) p_.options.feeds.push_back({.node = feed, .index = 0});
    for (const std::string& fetch : fetches) {
      p_.options.fetches.push_back({.node = fetch, .index = 0});
    }
    const auto needed = FeedsOfFetches(p_.graph, p_.options);
    EXPECT_TRUE(needed.ok()) << needed.status();
    return needed.ok() ? *needed : Needed();
  }
  TestProgram p_;
};

TEST_F(FeedsOfFetchesTest, AFeedHidesWhatIsBehindIt) {
  Node* const a = p_.Add("a", "Input");
  Node* const b = p_.Add("b", "Heavy", {{a, 0}});
  Node* const c = p_.Add("c", "Heavy", {{b, 0}});
  Node* const d = p_.Add("d", "Sum2", {{c, 0}, {a, 0}});
  p_.Add("waits", "Input", {}, {.after = {d}});
  p_.Add("alone", "Input");
  EXPECT_EQ(Of({"b", "a"}, {"c", "d", "waits", "alone"}), (Needed{{0}, {0, 1}, {0, 1}, {}}));
}

TEST_F(FeedsOfFetchesTest, MoreFeedsThanAreFoundAtATime) {
  std::vector<std::string> feeds, fetches;
  for (int i = 0; i < 1200; ++i) {
    feeds.push_back(StrCat("in", i));
    fetches.push_back(StrCat("out", i));
    p_.Add(fetches[i], "Heavy", {{p_.Add(feeds[i], "Input"), 0}});
  }
  const Needed needed = Of(feeds, fetches);
  ASSERT_EQ(needed.size(), 1200u);
  for (int i = 0; i < 1200; ++i) EXPECT_EQ(needed[i], std::vector<int>{i});
}

// One walk per fetch would visit 100,000 times 50,000 nodes.
TEST_F(FeedsOfFetchesTest, ManyFetchesOfOneChain) {
  Node* last = p_.Add("in", "Input");
  std::vector<std::string> fetches;
  for (int i = 0; i < 100'000; ++i) {
    fetches.push_back(StrCat("n", i));
    last = p_.Add(fetches[i], "Heavy", {{last, 0}});
  }
  EXPECT_EQ(Of({"in"}, fetches), Needed(100'000, {0}));
}

}  // namespace
}  // namespace penstock

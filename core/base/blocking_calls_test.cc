// SPDX-License-Identifier: Apache-2.0
#include "core/base/blocking_calls.h"

#include <optional>

#include "core/base/forwarding_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Clock final : public ForwardingEnv {
 public:
  Clock() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_ns; }
  int64_t now_ns = 0;
};

TEST(BlockingCalls, AreListedWhileTheyLast) {
  Clock clock;
  EXPECT_THAT(BlockingCall::List(clock), IsEmpty());
  std::optional<BlockingCall> first(std::in_place, "node 'a' of step 1", clock);
  clock.now_ns = 2'500'000'000;
  {
    const BlockingCall second("node 'b' of step 2", clock);
    clock.now_ns = 3'000'000'000;
    EXPECT_THAT(BlockingCall::List(clock),
                ElementsAre("node 'a' of step 1, for 3 s", "node 'b' of step 2, for 0 s"));
    first.reset();
    EXPECT_THAT(BlockingCall::List(clock), ElementsAre("node 'b' of step 2, for 0 s"));
  }
  EXPECT_THAT(BlockingCall::List(clock), IsEmpty());
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/callables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CallablesTest : public testing::Test {
 protected:
  static std::shared_ptr<PreparedStep> NewStep() {
    return std::make_shared<PreparedStep>(CallableSpec{.targets = {"t"}});
  }
  static Status Unknown(int64_t callable) {
    return InvalidArgument("callable ", callable, " was never made or has been released");
  }

  const std::shared_ptr<PreparedStep> first_ = NewStep(), second_ = NewStep();
  Callables callables_;
};

TEST_F(CallablesTest, FindReturnsTheStepAndItsOptions) {
  const int64_t first = callables_.Add({first_, {.timeout_ms = 30}});
  const int64_t second = callables_.Add({second_, {}});
  EXPECT_NE(first, second);
  const auto found = callables_.Find(first);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->step, first_);
  EXPECT_EQ(found->options.timeout_ms, 30);
  EXPECT_THAT(callables_.Steps(), ElementsAre(first_, second_));
  EXPECT_EQ(callables_.Find(77).status(), Unknown(77));
}

TEST_F(CallablesTest, AReleasedHandleIsNeverUsedAgain) {
  const int64_t first = callables_.Add({first_, {}});
  EXPECT_EQ(callables_.Release(first), OkStatus());
  EXPECT_EQ(callables_.Release(first), Unknown(first));
  EXPECT_EQ(callables_.Find(first).status(), Unknown(first));
  EXPECT_NE(callables_.Add({second_, {}}), first);
}

TEST_F(CallablesTest, AStepIsReplacedInAllCallablesThatRunIt) {
  callables_.Add({first_, {.timeout_ms = 30}});
  callables_.Add({second_, {}});
  const int64_t last = callables_.Add({first_, {.timeout_ms = 40}});
  const auto next = NewStep();
  callables_.Replace(*first_, next);
  EXPECT_THAT(callables_.Steps(), ElementsAre(next, second_, next));
  EXPECT_EQ(callables_.Find(last)->options.timeout_ms, 40);
}

TEST_F(CallablesTest, ClearRemovesThemAndTheirSteps) {
  const std::weak_ptr<PreparedStep> step = [&] {
    const auto kept = NewStep();
    callables_.Add({kept, {}});
    return std::weak_ptr<PreparedStep>(kept);
  }();
  EXPECT_FALSE(step.expired());
  callables_.Clear();
  EXPECT_TRUE(step.expired());
  EXPECT_THAT(callables_.Steps(), IsEmpty());
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "client/exit_deadline.h"

#include "core/base/blocking_calls.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::ExitedWithCode;

constexpr int64_t kForeverNanos = 3'600'000'000'000;

TEST(ExitDeadlineTest, TheProcessExitsAndSaysWhatItWaitedFor) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const BlockingCall call("node 'read' of step 7 waits for files", Env::Real());
        const ExitDeadline deadline(0.01);
        Env::Real().SleepForNanos(kForeverNanos);
      },
      ExitedWithCode(ExitDeadline::kExitCode),
      "did not within 0.01 s, because of: node 'read' of step 7 waits for files, for 0 s; it "
      "exits");
}

TEST(ExitDeadlineTest, OrWhatItsOwnerSays) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const ExitDeadline deadline(0.01, [] { return "step 12"; });
        Env::Real().SleepForNanos(kForeverNanos);
      },
      ExitedWithCode(ExitDeadline::kExitCode), "because of: step 12; it exits now");
}

TEST(ExitDeadlineTest, AProcessThatIsInTimeGoesOn) {
  { const ExitDeadline deadline(1'000'000); }
  SUCCEED();
}

}  // namespace
}  // namespace penstock::client

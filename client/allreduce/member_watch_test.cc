// SPDX-License-Identifier: Apache-2.0
#include "client/allreduce/member_watch.h"

#include <functional>

#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

class MemberWatchTest : public testing::Test {
 protected:
  // Runs `body` with a watch of worker 2.
  void WithWatch(const std::function<void(MemberWatch&)>& body) {
    ASSERT_EQ(scheduler_.Run([&] {
      MemberWatch watch({.patience_seconds = 10,
                         .client_is_gone =
                             [this](int worker) {
                               EXPECT_EQ(worker, 2);
                               ++asked_;
                               return gone_;
                             },
                         .env = &env_,
                         .scheduler = &scheduler_});
      watch.Start(2, [this] { ++left_; });
      body(watch);
      watch.Stop();
    }),
              OkStatus());
  }
  void Sleep(int64_t seconds) { env_.SleepForNanos(seconds * kSecondNs); }

  SimScheduler scheduler_{{.seed = 1}};
  SimEnv env_{scheduler_, Env::Real()};
  bool gone_ = false;
  int asked_ = 0, left_ = 0;
};

TEST_F(MemberWatchTest, ALostClientEndsALongWait) {
  gone_ = true;
  WithWatch([this](MemberWatch& watch) {
    watch.BeginWait();
    Sleep(9);
    EXPECT_EQ(asked_, 0);
    EXPECT_EQ(watch.gone(), -1);
    Sleep(3);
    EXPECT_EQ(watch.gone(), 2);
    EXPECT_GE(left_, 1);
    const int left = left_;
    Sleep(3);
    EXPECT_EQ(asked_, 1);
    EXPECT_GT(left_, left) << "the wait goes on";
    watch.EndWait();
    const int left_by_then = left_;
    Sleep(3);
    EXPECT_EQ(left_, left_by_then);
  });
}

TEST_F(MemberWatchTest, APresentClientDoesNotEndTheWait) {
  WithWatch([this](MemberWatch& watch) {
    watch.BeginWait();
    Sleep(30);
    EXPECT_GE(asked_, 15);
    EXPECT_EQ(watch.gone(), -1);
    EXPECT_EQ(left_, 0);
  });
}

TEST_F(MemberWatchTest, AWorkerThatDoesNotWaitAsksNobody) {
  gone_ = true;
  WithWatch([this](MemberWatch& watch) {
    for (int step = 0; step < 10; ++step) {
      watch.BeginWait();
      Sleep(5);
      watch.EndWait();
      Sleep(20);
    }
    EXPECT_EQ(asked_, 0);
  });
}

TEST_F(MemberWatchTest, StopForgetsTheLostClient) {
  gone_ = true;
  WithWatch([this](MemberWatch& watch) {
    watch.BeginWait();
    Sleep(12);
    EXPECT_EQ(watch.gone(), 2);
    watch.Stop();
    EXPECT_EQ(watch.gone(), -1);
  });
}

}  // namespace
}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
#include "client/examples/serving_workers.h"

#include <set>
#include <string>

#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::examples {
namespace {

// A worker that was killed at the end of the training is told when it is back.
TEST(ShutdownTasks, AServerThatStartsASecondLaterIsTold) {
  TestCluster cluster({{"worker", 2}});
  const std::set<std::string> workers = {cluster.spec().Address("worker", 0),
                                         cluster.spec().Address("worker", 1)};
  cluster.Stop("worker", 1);
  auto supervisor = Scheduler::Real().StartThread("supervisor", [&] {
    Env::Real().SleepForNanos(1'000'000'000);
    cluster.Restart("worker", 1);
  });
  EXPECT_THAT(ShutdownTasks(workers, {.retry_ns = 60'000'000'000}), testing::IsEmpty());
  supervisor = nullptr;  // waits until the thread has ended
  for (const int worker : {0, 1}) {
    EXPECT_THAT(cluster.server("worker", worker).shutdown_reason(),
                testing::HasSubstr("training has ended"));
  }
}

TEST(ShutdownTasks, ATaskThatStaysAwayIsNamed) {
  TestCluster cluster({{"worker", 2}});
  const std::string lost = cluster.spec().Address("worker", 1);
  cluster.Stop("worker", 1);
  const auto left = ShutdownTasks({cluster.spec().Address("worker", 0), lost},
                                  {.retry_ns = 1'000'000, .pause_ns = 1'000'000});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left.begin()->first, lost);
  EXPECT_FALSE(left.begin()->second.ok());
}

}  // namespace
}  // namespace penstock::examples

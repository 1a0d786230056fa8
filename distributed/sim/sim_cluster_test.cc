// SPDX-License-Identifier: Apache-2.0
#include "distributed/sim/sim_cluster.h"

#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/check.h"
#include "core/base/sim/sim_env.h"
#include "core/graph/builder.h"
#include "core/runtime/testing/test_ops.h"
#include "core/tensor/caching_allocator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// Runs a step that makes a tensor of `bytes` bytes on the first task of `job`. Returns its status.
Status FillOn(SimCluster& cluster, const std::string& job, int64_t bytes) {
  GraphBuilder g;
  const Output size = CallIn(g, "Placeholder", {}, {{"dtype", DType::kInt32}});
  const Output filled = Call("Fill", {size, Constant(g, Tensor::Scalar<uint8_t>(7))});
  CHECK_OK(g.status());
  const auto session = cluster.NewSession("client", job, 0);
  CHECK_OK(session->Extend(g.graph()));
  std::vector<Tensor> out;
  return session->Run({}, {{size.name(), Tensor::Vector<int32_t>({static_cast<int32_t>(bytes)})}},
                      {filled.name()}, {}, &out, nullptr);
}

TEST(SimClusterTest, EachTaskHasMemoryOfItsOwn) {
  if (&CpuAllocator() != &CachingAllocator::Get()) GTEST_SKIP() << "no account is charged";
  SimScheduler scheduler({.seed = 1});
  SimEnv env(scheduler, Env::Real());
  const Status ran = scheduler.Run([&] {
    SimCluster cluster(scheduler, env, {{"ps", 1}, {"worker", 1}}, {}, 8 << 20);
    const Status refused = FillOn(cluster, "ps", 9 << 20);
    EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("/job:ps/replica:0/task:0 may hold 8388608 bytes"));
    EXPECT_EQ(FillOn(cluster, "worker", 5 << 20), OkStatus());
    EXPECT_EQ(cluster.task("ps", 0).worker().allocators()[0].stats.bytes_limit, 8 << 20);
    EXPECT_EQ(MemoryAccount::Task().limit(), 0) << "the machine's memory does not matter";
  });
  EXPECT_EQ(ran, OkStatus());
}

constexpr int64_t kSecond = 1'000'000'000;

// Runs a step of a client of worker 0 that waits on `device` until it is aborted, and calls `fault`
// one second after it has begun.
void WhileAStepWaits(SimScheduler& scheduler, SimCluster& cluster, const std::string& device,
                     absl::FunctionRef<void()> fault) {
  GraphBuilder g;
  Output never;
  {
    const auto there = g.DeviceScope(device);
    never = CallIn(g, "TestStall", {Outputs{}});
  }
  const auto here = g.DeviceScope("/job:worker/task:0");
  const Output passed = Call("Identity", {never});
  CHECK_OK(g.status());
  const auto session = cluster.NewSession("client", "worker", 0);
  CHECK_OK(session->Extend(g.graph()));
  const auto client = scheduler.StartThread("client", [&] {
    std::vector<Tensor> out;
    EXPECT_FALSE(session->Run({}, {}, {passed.name()}, {}, &out, nullptr).ok());
  });
  scheduler.SleepUntil(scheduler.now_ns() + kSecond);
  fault();
}

int64_t Running(SimCluster& cluster, const std::string& job, int index) {
  return cluster.task(job, index).worker().steps().counts().running;
}

TEST(SimClusterTest, AKilledMastersStepsEndWithItsConnections) {
  SimScheduler scheduler({.seed = 1});
  SimEnv env(scheduler, Env::Real());
  const Status ran = scheduler.Run([&] {
    SimCluster cluster(scheduler, env, {{"ps", 1}, {"worker", 1}});
    WhileAStepWaits(scheduler, cluster, "/job:ps/task:0", [&] {
      ASSERT_EQ(Running(cluster, "ps", 0), 1);
      cluster.network().Kill(SimEnd::Of(cluster.task("worker", 0).self()), /*silent=*/false);
      scheduler.SleepUntil(scheduler.now_ns() + kSecond / 10);
      EXPECT_EQ(Running(cluster, "ps", 0), 0);
    });
  });
  EXPECT_EQ(ran, OkStatus());
}

// The master is frozen for so long that the worker's heartbeats find it lost, but its connections
// stay open.
TEST(SimClusterTest, AWorkerEndsTheStepsOfAMasterThatItsOwnHeartbeatsFindLost) {
  SimScheduler scheduler({.seed = 1});
  SimEnv env(scheduler, Env::Real());
  const Status ran = scheduler.Run([&] {
    SimCluster cluster(scheduler, env, {{"worker", 2}}, {.keepalive_ns = 1'000 * kSecond});
    const auto own = cluster.NewSession("other client", "worker", 1);
    ASSERT_EQ(own->Extend(GraphBuilder().graph()), OkStatus());
    WhileAStepWaits(scheduler, cluster, "/job:worker/task:1", [&] {
      ASSERT_EQ(Running(cluster, "worker", 1), 1);
      cluster.network().Freeze("worker-0", scheduler.now_ns() + 50 * kSecond);
      scheduler.SleepUntil(scheduler.now_ns() + 3 * kSecond);
      EXPECT_EQ(Running(cluster, "worker", 1), 1);
      scheduler.SleepUntil(scheduler.now_ns() + 7 * kSecond);
      EXPECT_EQ(Running(cluster, "worker", 1), 0) << "sooner than at the end of the lease";
    });
  });
  EXPECT_EQ(ran, OkStatus());
}

}  // namespace
}  // namespace penstock

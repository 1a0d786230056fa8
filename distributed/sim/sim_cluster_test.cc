// SPDX-License-Identifier: Apache-2.0
#include "distributed/sim/sim_cluster.h"

#include <vector>

#include "core/base/check.h"
#include "core/base/sim/sim_env.h"
#include "core/graph/builder.h"
#include "core/tensor/caching_allocator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// Returns the status of a step on the task that makes a tensor of this many bytes.
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

}  // namespace
}  // namespace penstock

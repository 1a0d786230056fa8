// SPDX-License-Identifier: Apache-2.0
//
// Tests that aborted steps and vanished clients leave behind no memory, threads, descriptors,
// mappings or entries of tables. Each case runs three times; only what the third run leaves behind
// counts as a leak, because the earlier runs fill caches and pools.
//
// PENSTOCK_LEAK_ROUNDS=10000 aborts 10000 steps, lets 1000 clients vanish, and takes minutes. If
// the variable is not set, the numbers are small.
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>

#include "absl/strings/numbers.h"
#include "core/graph/builder.h"
#include "core/runtime/testing/test_ops.h"
#include "distributed/rpc/testing/master_client.h"
#include "distributed/testing/held.h"
#include "distributed/testing/test_cluster.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kShortRounds = 200;
// gRPC's pools may grow by a few threads and descriptors. Allocators return freed memory to the
// system late, and keep some of it; sanitizers keep all. A leak in each round would add more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kBytesMax = int64_t{1} << 40;
#else
constexpr int64_t kBytesMax = int64_t{24} << 20;
#endif
constexpr Held kSlack{.threads = 4, .descriptors = 4, .mappings = 0, .bytes = kBytesMax};

int64_t Rounds() {
  const char* const text = std::getenv("PENSTOCK_LEAK_ROUNDS");
  int64_t rounds = kShortRounds;
  CHECK(text == nullptr || (absl::SimpleAtoi(text, &rounds) && rounds >= 10),
        "PENSTOCK_LEAK_ROUNDS=", text, ": expected a number of at least 10");
  return rounds;
}

Held HeldNow() {
  malloc_trim(0);
  return Held::By(getpid());
}

// Runs `rounds` three times, and expects that the third run leaves nothing. The earlier ones fill
// caches and pools.
void ExpectNoLeak(TestCluster& cluster, const std::function<void()>& rounds) {
  rounds();
  EXPECT_TRUE(cluster.Idle());
  rounds();
  EXPECT_TRUE(cluster.Idle());
  const Held before = HeldNow();
  rounds();
  EXPECT_TRUE(cluster.Idle());
  // Connections and sessions may be closed a little later.
  for (int i = 0; i < 300 && HeldNow().Exceeds(before, kSlack); ++i) {
    Env::Real().SleepForNanos(100'000'000);
  }
  const Held after = HeldNow();
  EXPECT_FALSE(after.Exceeds(before, kSlack))
      << before.ToString() << "; later " << after.ToString();
}

// Adds nodes that wait on the ps for ever, and a tensor that the ps sends to the worker meanwhile.
Output Waits(GraphBuilder& g) {
  Output sent, waits;
  {
    const auto ps = g.DeviceScope("/job:ps/task:0");
    sent = Constant(g, Tensor(DType::kInt64, Shape({1 << 15})));
    waits = CallIn(g, "TestStall", {Outputs{}});
  }
  const auto worker = g.DeviceScope("/job:worker/task:0");
  return Call("AddV2", {waits, sent});
}

class LeaksTest : public testing::TestWithParam<const char*> {
 protected:
  static ServerOptions Options() {
    ServerOptions options = TestCluster::Quick();
    options.task.protocol = GetParam();
    options.session_idle_timeout_ms = 1'000;
    options.stuck_after_ms = 0;
    return options;
  }
  TestCluster cluster_{{{"ps", 1}, {"worker", 1}}, Options()};
};

TEST_P(LeaksTest, AbortedSteps) {
  GraphBuilder g;
  const Output waits = Waits(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  const auto session = cluster_.NewSession({.optimize = false});
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  ExpectNoLeak(cluster_, [&] {
    for (int64_t i = 0; i < Rounds(); ++i) {
      std::vector<Tensor> outputs;
      const Status status =
          session->Run({.timeout_ms = 1 + i % 3}, {}, {waits.name()}, {}, &outputs, nullptr);
      ASSERT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    }
  });
}

TEST_P(LeaksTest, VanishedClients) {
  GraphBuilder g;
  const Output waits = Waits(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  ExpectNoLeak(cluster_, [&] {
    for (int64_t i = 0; i < Rounds() / 10; ++i) {
      MasterClient client(cluster_.target());
      ASSERT_TRUE(client.Create(g.graph()).ok());
      // A client that disappears in the middle of a step and does not close its session.
      tensorflow::RunStepRequest request = client.Step(waits.name());
      tensorflow::RunStepResponse response;
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(20));
      EXPECT_FALSE(client.stub().RunStep(&context, request, &response).ok());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, LeaksTest, testing::Values("shm", "grpc"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace penstock

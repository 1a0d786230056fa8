// SPDX-License-Identifier: Apache-2.0
//
// Tests that aborted steps and vanished clients leave behind no memory, threads, descriptors,
// mappings or entries of tables. Each case runs three times; only what the third run leaves behind
// counts as a leak, because the earlier runs fill caches and pools.
//
// PENSTOCK_LEAK_ROUNDS=10000 aborts 10000 steps, lets 1000 clients vanish, and takes minutes. If
// the variable is not set, the numbers are small.
#include <dirent.h>
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/numbers.h"
#include "core/graph/builder.h"
#include "core/runtime/testing/test_ops.h"
#include "distributed/rpc/testing/master_client.h"
#include "distributed/testing/test_cluster.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kShortRounds = 200;
// The numbers by which gRPC's pools may grow; a leak in each round would add more.
constexpr int64_t kThreadsMax = 4, kDescriptorsMax = 4;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kBytesMax = int64_t{1} << 40;  // sanitizers keep freed memory
#else
// Allocators return freed memory to the system late, and keep some of it.
constexpr int64_t kBytesMax = int64_t{24} << 20;
#endif

int64_t Rounds() {
  const char* const text = std::getenv("PENSTOCK_LEAK_ROUNDS");
  int64_t rounds = kShortRounds;
  CHECK(text == nullptr || (absl::SimpleAtoi(text, &rounds) && rounds >= 10),
        "PENSTOCK_LEAK_ROUNDS=", text, ": expected a number of at least 10");
  return rounds;
}

int64_t Entries(const char* path) {
  int64_t count = 0;
  DIR* const folder = opendir(path);
  CHECK(folder != nullptr);
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

struct Held {
  int64_t threads = 0, descriptors = 0, mappings = 0, bytes = 0;

  static Held Now() {
    Held held{.threads = Entries("/proc/self/task"), .descriptors = Entries("/proc/self/fd")};
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      held.mappings += line.find("penstock-tensors") != std::string::npos;
    }
    malloc_trim(0);
    std::ifstream statm("/proc/self/statm");
    int64_t size = 0, resident = 0;
    statm >> size >> resident;
    held.bytes = resident * 4096;
    return held;
  }
  bool Exceeds(const Held& other) const {
    return threads > other.threads + kThreadsMax ||
           descriptors > other.descriptors + kDescriptorsMax || mappings > other.mappings ||
           bytes > other.bytes + kBytesMax;
  }
  std::string ToString() const {
    return StrCat(threads, " threads, ", descriptors, " descriptors, ", mappings, " mappings, ",
                  bytes >> 20, " MB");
  }
};

// Runs `rounds` three times, and expects that the third run leaves nothing. The earlier ones fill
// caches and pools.
void ExpectNoLeak(TestCluster& cluster, const std::function<void()>& rounds) {
  rounds();
  EXPECT_TRUE(cluster.Idle());
  rounds();
  EXPECT_TRUE(cluster.Idle());
  const Held before = Held::Now();
  rounds();
  EXPECT_TRUE(cluster.Idle());
  // Connections and sessions may be closed a little later.
  for (int i = 0; i < 300 && Held::Now().Exceeds(before); ++i) {
    Env::Real().SleepForNanos(100'000'000);
  }
  const Held after = Held::Now();
  EXPECT_FALSE(after.Exceeds(before)) << before.ToString() << "; later " << after.ToString();
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

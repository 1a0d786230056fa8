// SPDX-License-Identifier: Apache-2.0
//
// Aborted steps, eight at a time, and a worker that is killed again and again must leave memory,
// threads, descriptors and mappings of the other processes where they were after a warm-up.
//
// PENSTOCK_LEAK_ROUNDS=10000 aborts 10,000 steps; README.md.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/base/cancellation.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/graph/builder.h"
#include "distributed/testing/held.h"
#include "gtest/gtest.h"
#include "tests/leaks/server_process.h"

namespace penstock {
namespace {

constexpr int kConcurrentSteps = 8;
constexpr int64_t kShortRounds = 200, kRoundsPerKill = 50;
// The test fails if no step was aborted for so long.
constexpr int64_t kNoAbortNanosMax = 120'000'000'000;
constexpr char kPs[] = "/job:ps/task:0/device:CPU:0";
constexpr char kMaster[] = "/job:worker/task:0/device:CPU:0";
constexpr char kVictim[] = "/job:worker/task:1/device:CPU:0";
// The memory may grow by what allocators and gRPC's pools keep of the busiest moment; a leak of
// 10 KB in each of 10,000 steps would add more.
constexpr Held kSlack{.threads = 4, .descriptors = 4, .mappings = 0, .bytes = int64_t{96} << 20};

int64_t Rounds() {
  const char* const text = std::getenv("PENSTOCK_LEAK_ROUNDS");
  int64_t rounds = kShortRounds;
  CHECK(text == nullptr || (absl::SimpleAtoi(text, &rounds) && rounds >= 10),
        "PENSTOCK_LEAK_ROUNDS=", text, ": expected a number of at least 10");
  return rounds;
}

// The steps of one client. Each client has collectives of its own.
struct Steps {
  explicit Steps(int client) : client(client) {
    const std::vector<DType> types = {DType::kFloat};
    const Output sent =
        On(kPs, [&] { return Constant(g, Tensor(DType::kFloat, Shape({1 << 18}))); });
    const Output back = On(kVictim, [&] { return Call("AddV2", {sent, sent}); });
    transfers = On(kPs, [&] { return Sum(back); });
    const Output stalled = On(kPs, [&] {
      const Output queue =
          CallIn(g, "FIFOQueueV2", {},
                 {{"component_types", types}, {"shared_name", "always_empty"}});
      return Call("QueueDequeueV2", {queue}, {{"component_types", types}});
    });
    // The step has a tensor on its way to the victim while it waits.
    waits = On(kVictim, [&] { return Sum(Call("AddV2", {stalled, sent})); });
    small = Reduce(1 << 10, 1, {});
    large = Reduce(1 << 18, 2, {});
    incomplete = Reduce(1 << 18, 3, stalled);
  }

  // Adds an all-reduce of three tasks. The ps takes part only when `after`, if valid, is there.
  Output Reduce(int64_t elements, int instance, Output after) {
    Outputs reduced;
    for (const char* device : {kPs, kMaster, kVictim}) {
      reduced.push_back(On(device, [&] {
        Output own = Constant(g, Tensor(DType::kFloat, Shape({elements})));
        if (after.valid() && device == kPs) own = Call("AddV2", {own, after});
        return Sum(Call("CollectiveReduce", {own},
                        {{"group_key", client + 1},
                         {"group_size", 3},
                         {"instance_key", instance},
                         {"merge_op", "Add"},
                         {"final_op", "Id"},
                         {"subdiv_offsets", std::vector<int64_t>{0}}}));
      }));
    }
    return On(kMaster, [&] { return Call("AddN", {reduced}); });
  }
  Output Sum(Output x) {
    return Call("Sum", {x, Constant(g, Tensor::Vector<int32_t>({0}))});
  }
  template <class Make>
  Output On(const char* device, Make make) {
    const auto scope = g.DeviceScope(device);
    return make();
  }

  const int client;
  GraphBuilder g;
  Output transfers, waits, small, large, incomplete;
};

class LeaksCluster {
 public:
  explicit LeaksCluster(const std::string& protocol) {
    const std::string ps = Address(), master = Address(), victim = Address();
    const auto start = [&](const std::string& job, int index, const std::string& address) {
      return std::make_unique<ServerProcess>(
          std::vector<std::string>{StrCat("--job_name=", job), StrCat("--task_index=", index),
                                   StrCat("--ps_hosts=", ps),
                                   StrCat("--worker_hosts=", master, ",", victim),
                                   StrCat("--protocol=", protocol), "--heartbeat_ms=200",
                                   "--keepalive_ms=500", "--keepalive_timeout_ms=500",
                                   "--session_idle_timeout=1", "--stuck_after_seconds=0"},
          address, StrCat(testing::TempDir(), "/", protocol, "-", job, "-", index, ".log"));
    };
    ps_ = start("ps", 0, ps);
    master_ = start("worker", 0, master);
    victim_ = start("worker", 1, victim);
  }

  ServerProcess& victim() { return *victim_; }
  std::unique_ptr<SessionInterface> NewSession() {
    auto session = NewRemoteSession(master_->target(),
                                    {.operation_timeout_ms = 5'000, .optimize = false});
    CHECK_OK(session.status());
    return *std::move(session);
  }
  // Returns the resources of the processes that are never killed, keyed by their names.
  std::map<std::string, Held> HeldNow() const {
    return {{"client", Held::By(getpid())},
            {"ps", Held::By(ps_->pid())},
            {"master", Held::By(master_->pid())}};
  }

 private:
  static std::string Address() { return StrCat("127.0.0.1:", ReservePort()); }
  std::unique_ptr<ServerProcess> ps_, master_, victim_;
};

// Counts the ends of steps, by all clients.
struct Ends {
  std::atomic<int64_t> aborted{0}, well{0}, lost{0};
  std::atomic<int64_t> last_aborted_ns{Env::Real().NowNanos()};
  Mutex mu;
  std::string wrong ABSL_GUARDED_BY(mu);  // the first error that no step should have

  void NoteAborted() {
    last_aborted_ns = Env::Real().NowNanos();
    ++aborted;
  }
  void NoteWrong(const std::string& text) {
    MutexLock lock(mu);
    if (wrong.empty()) wrong = text;
  }
  // Returns whether fewer than `rounds` steps were aborted. Also returns false, and sets `wrong`,
  // if none was aborted for kNoAbortNanosMax.
  bool GoOn(int64_t rounds) {
    if (aborted >= rounds) return false;
    if (Env::Real().NowNanos() - last_aborted_ns < kNoAbortNanosMax) return true;
    NoteWrong(StrCat("no step was aborted for ", kNoAbortNanosMax / 1'000'000'000, " s, after ",
                     aborted.load(), " of ", rounds));
    return false;
  }
};

// Runs a random step, which ends within seconds in any case.
Status RunStep(SessionInterface& session, const Steps& steps, std::mt19937& random) {
  const Output* const kinds[] = {&steps.transfers, &steps.transfers,  &steps.waits,
                                 &steps.waits,     &steps.small,      &steps.large,
                                 &steps.large,     &steps.incomplete, &steps.incomplete};
  const Output& fetch = *kinds[random() % std::size(kinds)];
  const bool never_ends = &fetch == &steps.waits || &fetch == &steps.incomplete;
  const bool aborts = never_ends || random() % 2 == 0;
  const auto soon_ms = static_cast<int64_t>(1 + random() % 8);
  std::vector<Tensor> outputs;
  if (aborts && random() % 8 == 0) {
    Cancellation cancellation;
    std::thread canceller([&] {
      Env::Real().SleepForNanos(soon_ms * 1'000'000);
      cancellation.Cancel(Cancelled("no longer wanted"));
    });
    const Status ran = session.Run({.timeout_ms = 5'000, .cancellation = &cancellation}, {},
                                   {fetch.name()}, {}, &outputs, nullptr);
    canceller.join();
    return ran;
  }
  return session.Run({.timeout_ms = aborts ? soon_ms : 5'000}, {}, {fetch.name()}, {}, &outputs,
                     nullptr);
}

void RunClient(LeaksCluster& cluster, int client, int64_t rounds, Ends& ends) {
  const Steps steps(client);
  CHECK_OK(steps.g.status());
  std::mt19937 random(static_cast<unsigned>(client) + 1);
  std::unique_ptr<SessionInterface> session;
  while (ends.GoOn(rounds)) {
    if (session == nullptr) {
      session = cluster.NewSession();
      if (!session->Extend(steps.g.graph()).ok()) session = nullptr;
      if (session == nullptr) Env::Real().SleepForNanos(10'000'000);
      if (session == nullptr) continue;
    }
    const Status ran = RunStep(*session, steps, random);
    if (ran.ok()) {
      ++ends.well;
    } else if (absl::IsDeadlineExceeded(ran) || absl::IsCancelled(ran)) {
      ends.NoteAborted();
    } else if (absl::IsAborted(ran) || absl::IsUnavailable(ran)) {
      ++ends.lost;
      session = nullptr;
    } else {
      ends.NoteWrong(ran.ToString());
      ends.NoteAborted();
    }
  }
}

// Aborts `rounds` steps and kills the victim meanwhile.
void AbortAndKill(LeaksCluster& cluster, int64_t rounds) {
  Ends ends;
  std::vector<std::thread> clients;
  for (int c = 0; c < kConcurrentSteps; ++c) {
    clients.emplace_back([&, c] { RunClient(cluster, c, rounds, ends); });
  }
  std::mt19937 random(1);
  int64_t kills = 0;
  while (ends.GoOn(rounds)) {
    Env::Real().SleepForNanos(1'000'000 + static_cast<int64_t>(random() % 1'000'000));
    if (ends.aborted < kills * kRoundsPerKill) continue;
    ++kills;
    cluster.victim().Kill();
    Env::Real().SleepForNanos(static_cast<int64_t>(random() % 300'000'000));
    cluster.victim().Start();
  }
  for (std::thread& client : clients) client.join();
  std::printf("%ld steps aborted, %ld ended well, %ld lost a task; %ld kills\n",
              static_cast<long>(ends.aborted), static_cast<long>(ends.well),
              static_cast<long>(ends.lost), static_cast<long>(kills));
  MutexLock lock(ends.mu);
  EXPECT_EQ(ends.wrong, "");
  EXPECT_GT(ends.well, 0);
}

// Connects each task to each other, for transfers and for collectives, by steps that end well.
// Otherwise the number of connections would depend on which steps ran after the last kill.
void ConnectAll(LeaksCluster& cluster) {
  const Steps steps(/*client=*/kConcurrentSteps);
  const int64_t end_ns = Env::Real().NowNanos() + kNoAbortNanosMax;
  Status ran;
  do {
    const auto session = cluster.NewSession();
    ran = session->Extend(steps.g.graph());
    for (const Output* fetch : {&steps.transfers, &steps.small, &steps.large}) {
      std::vector<Tensor> outputs;
      if (!ran.ok()) break;
      ran = session->Run({.timeout_ms = 5'000}, {}, {fetch->name()}, {}, &outputs, nullptr);
    }
  } while (!ran.ok() && Env::Real().NowNanos() < end_ns);
  EXPECT_TRUE(ran.ok()) << ran;
}

class ProcessLeaksTest : public testing::TestWithParam<const char*> {};

TEST_P(ProcessLeaksTest, AbortedStepsAndKillsLeaveNothing) {
  SetLogOptions({.level = LogLevel::kOff});
  LeaksCluster cluster(GetParam());
  AbortAndKill(cluster, Rounds() / 2);
  ConnectAll(cluster);
  Env::Real().SleepForNanos(3'000'000'000);  // idle sessions are closed meanwhile
  const std::map<std::string, Held> before = cluster.HeldNow();
  AbortAndKill(cluster, Rounds());
  ConnectAll(cluster);
  const auto exceeds = [&](const std::map<std::string, Held>& now) {
    for (const auto& [name, held] : now) {
      if (held.Exceeds(before.at(name), kSlack)) return true;
    }
    return false;
  };
  std::map<std::string, Held> after = cluster.HeldNow();
  for (int i = 0; i < 300 && exceeds(after); ++i) {
    Env::Real().SleepForNanos(100'000'000);
    after = cluster.HeldNow();
  }
  for (const auto& [name, held] : after) {
    std::printf("%-6s before: %s\n       after:  %s\n", name.c_str(),
                before.at(name).ToString().c_str(), held.ToString().c_str());
    EXPECT_FALSE(held.Exceeds(before.at(name), kSlack)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, ProcessLeaksTest, testing::Values("shm", "grpc"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace penstock

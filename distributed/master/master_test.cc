// SPDX-License-Identifier: Apache-2.0
//
// Which sessions are closed, on a clock that the test moves.
#include "distributed/master/master.h"

#include <atomic>
#include <limits>
#include <optional>

#include "core/base/forwarding_env.h"
#include "core/base/thread_pool.h"
#include "core/graph/builder.h"
#include "core/runtime/device.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kSecondMs = 1'000;
constexpr int64_t kHourMs = 3'600 * kSecondMs;

// The real machine, but for a clock that a test moves ahead.
class ClockEnv final : public ForwardingEnv {
 public:
  ClockEnv() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return ForwardingEnv::NowNanos() + ahead_ns_; }
  void SleepForNanos(int64_t nanos) override { ahead_ns_ += nanos; }

 private:
  std::atomic<int64_t> ahead_ns_{0};
};

class MasterTest : public testing::Test {
 protected:
  using Session = std::shared_ptr<MasterSession>;
  static constexpr const char* kTask = "/job:worker/replica:0/task:0";

  MasterTest() {
    Worker::Options options{.self = {.name = kTask, .address = "here:1", .incarnation = 1},
                            .threads = &threads_,
                            .env = &env_,
                            .timer = &DeadlineTimer::Real()};
    auto devices = MakeDevices({.task = *DeviceName::Parse(kTask), .gpus_max = 0});
    CHECK_OK(devices.status());
    options.devices = *std::move(devices);
    worker_.emplace(std::move(options));
    Master::Options made{
        .worker = &*worker_,
        .services = {.env = &env_, .timer = &DeadlineTimer::Real(), .threads = &threads_},
        .registry = &Registry::Global(),
        .idle_timeout_ms = kHourMs};
    CHECK_OK(made.cluster.AddTask("worker", 0, "here:1"));
    master_.emplace(std::move(made));
    for (int i = 0; i < 2; ++i) {  // Placeholder, Identity, Placeholder_1, Identity_1
      const Output x =
          CallIn(g_, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
      CallIn(g_, "Identity", {x});
    }
    CHECK_OK(g_.status());
  }

  // Of a client at that address; "": in this process.
  Session NewSession(const std::string& client, const SessionOptions& options = {}) {
    StatusOr<std::vector<SessionTask>> tasks = Internal("not found at once");
    master_->AwaitTasks(options, [&](auto found) { tasks = std::move(found); });
    CHECK_OK(tasks.status());
    auto session = master_->CreateSession(options, g_.graph().Clone(), *std::move(tasks), client);
    CHECK_OK(session.status());
    return *std::move(session);
  }
  bool IsOpen(const Session& session) const { return master_->FindSession(session->handle()).ok(); }
  void After(int64_t ms, const absl::flat_hash_set<std::string>& connected) {
    env_.SleepForNanos(ms * 1'000'000);
    master_->CloseIdleSessions(connected);
  }

  ClockEnv env_;
  ThreadPool threads_{"test", 2};
  std::optional<Worker> worker_;
  std::optional<Master> master_;
  GraphBuilder g_;
};

TEST_F(MasterTest, SessionsOfClientsThatHaveGoneAreClosed) {
  const Session gone = NewSession("ipv4:10.0.0.1:1");
  const Session silent = NewSession("ipv4:10.0.0.2:2");
  const Session here = NewSession("");
  After(kHourMs - kSecondMs, {"ipv4:10.0.0.2:2"});
  EXPECT_TRUE(IsOpen(gone));
  EXPECT_FALSE(master_->TakeClosed());
  After(2 * kSecondMs, {"ipv4:10.0.0.2:2"});
  EXPECT_FALSE(IsOpen(gone));
  EXPECT_TRUE(master_->TakeClosed());
  for (int hour = 0; hour < 100; ++hour) After(kHourMs + kSecondMs, {"ipv4:10.0.0.2:2"});
  EXPECT_TRUE(IsOpen(silent));
  EXPECT_TRUE(IsOpen(here));
  // An hour after it was last seen.
  After(kHourMs - kSecondMs, {});
  EXPECT_TRUE(IsOpen(silent));
  After(2 * kSecondMs, {});
  EXPECT_FALSE(IsOpen(silent));
  EXPECT_TRUE(IsOpen(here));
}

TEST_F(MasterTest, ACallFromANewConnectionKeepsASession) {
  const Session session = NewSession("ipv4:10.0.0.1:1");
  After(kHourMs - kSecondMs, {});
  session->CalledFrom("ipv4:10.0.0.1:9");
  After(kHourMs - kSecondMs, {});
  EXPECT_TRUE(IsOpen(session));
  After(kHourMs - kSecondMs, {"ipv4:10.0.0.1:9"});
  EXPECT_TRUE(IsOpen(session));
  After(kHourMs + kSecondMs, {"ipv4:10.0.0.1:1"});  // somebody else's by now
  EXPECT_FALSE(IsOpen(session));
}

TEST_F(MasterTest, APartialRunThatWasLeftBehindEndsWithItsSession) {
  const Session session = NewSession("ipv4:10.0.0.1:1");
  const auto run = session->SetUpPartialRun(
      {.feeds = {"Placeholder:0", "Placeholder_1:0"}, .fetches = {"Identity:0"}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(worker_->steps().counts().running, 1);
  After(kHourMs + kSecondMs, {});
  EXPECT_FALSE(IsOpen(session));
  EXPECT_EQ(worker_->steps().counts().running, 0);
}

// A session may have 10,000 that were not finished.
TEST_F(MasterTest, PartialRunsThatTimedOutAreForgotten) {
  const Session session = NewSession("ipv4:10.0.0.1:1", {.operation_timeout_ms = 200});
  const CallableSpec spec = {.feeds = {"Placeholder:0"}, .fetches = {"Identity:0"}};
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(session->SetUpPartialRun(spec).ok()) << i;
  for (int i = 0; i < 3'000 && worker_->steps().counts().running > 0; ++i) {
    Env::Real().SleepForNanos(10'000'000);
  }
  const auto run = session->SetUpPartialRun(spec);
  EXPECT_TRUE(run.ok()) << run.status();
}

TEST_F(MasterTest, TimeoutsOfAnyLengthAreTimeouts) {
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  const Feeds feeds = {{"Placeholder:0", Tensor::Scalar<float>(1)}};
  for (const int64_t ms : {kLongest, kLongest / 1'000'000, kLongest / 1'000'000 + 1}) {
    const Session session = NewSession("", {.operation_timeout_ms = ms});
    for (const RunOptions& options : {RunOptions{}, RunOptions{.timeout_ms = ms}}) {
      std::vector<Tensor> outputs;
      const Status ran =
          session->Run(options, feeds, {"Identity:0"}, {}, &outputs, /*metadata=*/nullptr);
      EXPECT_TRUE(ran.ok()) << ms << ": " << ran;
    }
    const auto run =
        session->SetUpPartialRun({.feeds = {"Placeholder:0"}, .fetches = {"Identity:0"}});
    ASSERT_TRUE(run.ok()) << ms << ": " << run.status();
    std::vector<Tensor> outputs;
    const Status ran =
        session->RunPartial(*run, {.timeout_ms = ms}, feeds, {"Identity:0"}, &outputs);
    EXPECT_TRUE(ran.ok()) << ms << ": " << ran;
    EXPECT_TRUE(master_->CloseSession(session->handle()).ok());
  }
}

}  // namespace
}  // namespace penstock

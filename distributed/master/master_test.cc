// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master.h"

#include <limits>
#include <numeric>

#include "distributed/master/testing/sim_master_test.h"
#include "distributed/worker/testing/fake_worker_client.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kSecondMs = 1'000;

class MasterTest : public SimMasterTest {
 protected:
  bool IsOpen(const Session& session) const { return master_->FindSession(session->handle()).ok(); }
  void After(int64_t ms, const absl::flat_hash_set<std::string>& connected) {
    Pass(ms);
    master_->CloseIdleSessions(connected);
  }
};

TEST_F(MasterTest, SessionsOfClientsThatHaveGoneAreClosed) {
  Serving([&] {
    const Session gone = NewSession("ipv4:10.0.0.1:1");
    const Session silent = NewSession("ipv4:10.0.0.2:2");
    const Session here = NewSession("");
    After(kHourMs - kSecondMs, {"ipv4:10.0.0.2:2"});
    EXPECT_TRUE(IsOpen(gone));
    EXPECT_FALSE(master_->ClosedSinceLastCall());
    After(2 * kSecondMs, {"ipv4:10.0.0.2:2"});
    EXPECT_FALSE(IsOpen(gone));
    EXPECT_TRUE(master_->ClosedSinceLastCall());
    for (int hour = 0; hour < 100; ++hour) After(kHourMs + kSecondMs, {"ipv4:10.0.0.2:2"});
    EXPECT_TRUE(IsOpen(silent));
    EXPECT_TRUE(IsOpen(here));
    // This is an hour after the client was last seen.
    After(kHourMs - kSecondMs, {});
    EXPECT_TRUE(IsOpen(silent));
    After(2 * kSecondMs, {});
    EXPECT_FALSE(IsOpen(silent));
    EXPECT_TRUE(IsOpen(here));
  });
}

TEST_F(MasterTest, ACallFromANewConnectionKeepsASession) {
  Serving([&] {
    const Session session = NewSession("ipv4:10.0.0.1:1");
    After(kHourMs - kSecondMs, {});
    session->NoteClientCall("ipv4:10.0.0.1:9");
    After(kHourMs - kSecondMs, {});
    EXPECT_TRUE(IsOpen(session));
    After(kHourMs - kSecondMs, {"ipv4:10.0.0.1:9"});
    EXPECT_TRUE(IsOpen(session));
    After(kHourMs + kSecondMs, {"ipv4:10.0.0.1:1"});  // another client has this address now
    EXPECT_FALSE(IsOpen(session));
  });
}

TEST_F(MasterTest, APartialRunThatWasLeftBehindEndsWithItsSession) {
  Serving([&] {
    const Session session = NewSession("ipv4:10.0.0.1:1");
    const auto run = session->SetUpPartialRun(
        {.feeds = {"Placeholder:0", "Placeholder_1:0"}, .fetches = {"Identity:0"}});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(running_steps(), 1);
    After(kHourMs + kSecondMs, {});
    EXPECT_FALSE(IsOpen(session));
    EXPECT_EQ(running_steps(), 0);
  });
}

// A session may have only 10,000 unfinished partial runs.
TEST_F(MasterTest, PartialRunsThatTimedOutAreForgotten) {
  Serving([&] {
    const Session session = NewSession("ipv4:10.0.0.1:1", {.operation_timeout_ms = 200});
    const CallableSpec spec = {.feeds = {"Placeholder:0"}, .fetches = {"Identity:0"}};
    for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(session->SetUpPartialRun(spec).ok()) << i;
    EXPECT_EQ(running_steps(), 10'000);
    Pass(1'000);
    EXPECT_EQ(running_steps(), 0);
    const auto run = session->SetUpPartialRun(spec);
    EXPECT_TRUE(run.ok()) << run.status();
  });
}

TEST_F(MasterTest, TimeoutsOfAnyLengthAreTimeouts) {
  Serving([&] {
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
  });
}

TEST_F(MasterTest, ASessionThatIsNotThereMayHaveBeenClosed) {
  Serving([&] {
    const Session session = NewSession("");
    EXPECT_EQ(*master_->FindSession(session->handle()), session);
    EXPECT_EQ(master_->FindSession("nope").status(), Aborted("Session nope is not found."));
    EXPECT_EQ(master_->CloseSession("nope"),
              Aborted("Session nope is not found. Possibly, this master has restarted."));
    EXPECT_TRUE(master_->CloseSession(session->handle()).ok());
    EXPECT_FALSE(IsOpen(session));
    EXPECT_FALSE((*worker_)->has_sessions());
  });
}

TEST_F(MasterTest, AStoppedMasterHasNoSessions) {
  Serving([&] {
    const Session session = NewSession("");
    master_->Stop();
    EXPECT_FALSE((*worker_)->has_sessions());
    Status refused;
    master_->AwaitTasks({}, [&](auto found) { refused = found.status(); });
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable) << refused;
    std::vector<Tensor> none;
    EXPECT_FALSE(session->Run({}, {}, {}, {"Identity"}, &none, nullptr).ok());
  });
}

TEST_F(MasterTest, StopEndsWaitsInTheOrderOfTheirArrival) {
  Simulate([&] {
    worker_.emplace(env_, scheduler_, *timer_);
    const auto silent = std::make_shared<FakeWorkerClient>();
    Master::Options options{
        .worker = &**worker_,
        .connect = [&](const TaskId&) { return silent; },
        .services = {.env = &env_, .timer = timer_.get(), .threads = &scheduler_},
        .registry = &Registry::Global()};
    CHECK_OK(options.cluster.AddTask("ps", 0, "here:1"));
    CHECK_OK(options.cluster.AddTask("worker", 0, "there:1"));
    master_.emplace(std::move(options));
    std::vector<int> arrived(50), ended;
    std::iota(arrived.begin(), arrived.end(), 0);
    for (const int i : arrived) {
      master_->AwaitTasks({}, [&ended, i](const auto& found) {
        EXPECT_EQ(found.status().code(), StatusCode::kUnavailable) << found.status();
        ended.push_back(i);
      });
    }
    EXPECT_EQ(master_->waits().size(), arrived.size());
    master_->Stop();
    EXPECT_EQ(ended, arrived);
    EXPECT_EQ(master_->waits().size(), 0u);
    master_.reset();
    worker_.reset();
  });
}

}  // namespace
}  // namespace penstock

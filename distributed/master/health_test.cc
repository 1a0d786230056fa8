// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/health.h"

#include <optional>

#include "core/runtime/testing/sim_test.h"
#include "distributed/worker/testing/fake_worker_client.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::ElementsAre;

const TaskId kPs = {.name = "/job:ps/replica:0/task:0", .address = "a:1", .incarnation = 11};

class HealthTest : public SimTest {
 protected:
  // Runs `body` with heartbeats every second; a task is lost after three failures.
  void Watching(const std::function<void()>& body) {
    Simulate([&] {
      monitor_.emplace(HealthOptions{.interval_ms = 1'000, .misses_max = 3}, env_, *timer_);
      Answer(TaskStatus{.self = kPs});
      body();
      monitor_.reset();
    });
  }
  std::shared_ptr<const TaskHealth> Watch(const std::string& session) {
    return monitor_->Watch(
        kPs, client_, session, [this, session](HealthMonitor::Loss what, const Status& why) {
          const char* const lost = what == HealthMonitor::Loss::kTask ? "" : " (the session)";
          reported_.push_back(StrCat(session, lost, ": ", why.ToString()));
        });
  }
  void Answer(StatusOr<TaskStatus> answer) { client_->status = std::move(answer); }

  std::shared_ptr<FakeWorkerClient> client_ = std::make_shared<FakeWorkerClient>();
  std::optional<HealthMonitor> monitor_;
  std::vector<std::string> reported_;
};

TEST_F(HealthTest, AHeartbeatNamesTheIncarnationAndRenewsTheSessionsLeases) {
  Watching([&] {
    Watch("s1");
    Watch("s2");
    Pass(2'500);
  });
  ASSERT_EQ(client_->status_calls.size(), 2) << "one question a second, for all sessions";
  const FakeWorkerClient::StatusCall& call = client_->status_calls[0];
  EXPECT_THAT(call.question.sessions, ElementsAre("s1", "s2"));
  EXPECT_FALSE(call.question.want_devices);
  EXPECT_EQ(call.options.incarnation, 11u);
  EXPECT_EQ(call.options.timeout_ms, 1'000);
}

TEST_F(HealthTest, ATaskThatMissesSeveralHeartbeatsIsUnavailableUntilItAnswers) {
  Watching([&] {
    const auto health = Watch("s");
    Pass(1'500);
    Answer(DeadlineExceeded("no route"));
    Pass(2'000);
    EXPECT_TRUE(health->ok()) << "two misses";
    EXPECT_THAT(reported_, ElementsAre());
    Pass(1'000);
    EXPECT_FALSE(health->ok());
    EXPECT_EQ(health->status(),
              Unavailable("/job:ps/replica:0/task:0 at a:1 has not answered 3 heartbeats: "
                          "no route"));
    Pass(10'000);
    EXPECT_EQ(reported_.size(), 1u) << "is told once";

    Answer(TaskStatus{.self = kPs});
    Pass(1'000);
    EXPECT_TRUE(health->ok());
    EXPECT_EQ(health->status(), OkStatus());
    Answer(DeadlineExceeded("no route"));
    Pass(2'000);
    EXPECT_TRUE(health->ok()) << "misses are counted in a row";
    Pass(1'000);
    EXPECT_EQ(reported_.size(), 2u);
  });
}

TEST_F(HealthTest, ARestartedTaskStaysAborted) {
  Watching([&] {
    const auto health = Watch("s");
    Answer(Aborted("has restarted"));
    Pass(1'500);
    EXPECT_THAT(reported_, ElementsAre("s: ABORTED: has restarted"));
    Answer(DeadlineExceeded("no route"));
    Pass(5'000);
    EXPECT_EQ(health->status(), Aborted("has restarted"));
    Answer(TaskStatus{.self = kPs});
    Pass(5'000);
    EXPECT_EQ(health->status(), Aborted("has restarted"));
    EXPECT_EQ(reported_.size(), 1u);
  });
}

// The restart may become known after the task was already considered lost.
TEST_F(HealthTest, ARestartIsReportedAfterASilence) {
  Watching([&] {
    const auto health = Watch("s");
    Answer(DeadlineExceeded("no route"));
    Pass(3'500);
    Answer(Aborted("has restarted"));
    Pass(1'000);
    EXPECT_EQ(health->status(), Aborted("has restarted"));
    EXPECT_EQ(reported_.size(), 2u);
  });
}

TEST_F(HealthTest, OnlyTheForgottenSessionGetsAborted) {
  Watching([&] {
    const auto health = Watch("s1");
    Watch("s2");
    Answer(TaskStatus{.self = kPs, .unknown_sessions = {"s2", "never heard of"}});
    Pass(1'500);
    EXPECT_THAT(reported_, ElementsAre("s2 (the session): ABORTED: /job:ps/replica:0/task:0 at a:1 "
                                   "has lost the session"));
    EXPECT_TRUE(health->ok()) << "the task itself is well";
  });
}

// The call that aborts a step may be lost while the task lives and heartbeats renew the session's
// lease.
TEST_F(HealthTest, ALostAbortIsRepeatedUntilTheTaskHasAcknowledgedIt) {
  Watching([&] {
    const auto health = Watch("s");
    client_->abort_answer = DeadlineExceeded("no route");
    health->NoteLostAbort(7, Unavailable("ps 1 is gone"));
    EXPECT_THAT(client_->log, ElementsAre());
    Pass(2'500);
    const std::string abort = "AbortStep 7: UNAVAILABLE: ps 1 is gone";
    EXPECT_THAT(client_->log, ElementsAre(abort, abort)) << "with each heartbeat";
    client_->abort_answer = OkStatus();
    Pass(5'000);
    EXPECT_THAT(client_->log, ElementsAre(abort, abort, abort));
  });
}

TEST_F(HealthTest, ARestartedTaskHasNoStepsToAbort) {
  Watching([&] {
    const auto health = Watch("s");
    health->NoteLostAbort(7, Unavailable("ps 1 is gone"));
    client_->abort_answer = Aborted("has restarted");
    Answer(Aborted("has restarted"));
    Pass(1'500);
    EXPECT_EQ(client_->log.size(), 1u);
    health->NoteLostAbort(8, Unavailable("ps 1 is gone"));
    Pass(5'000);
    EXPECT_EQ(client_->log.size(), 1u);
  });
}

TEST_F(HealthTest, ATaskIsAskedWhileASessionUsesIt) {
  Watching([&] {
    Watch("s1");
    Watch("s2");
    monitor_->Unwatch("s1");
    Pass(1'500);
    ASSERT_EQ(client_->status_calls.size(), 1u);
    EXPECT_THAT(client_->status_calls[0].question.sessions, ElementsAre("s2"));
    monitor_->Unwatch("s2");
    Pass(5'000);
    EXPECT_EQ(client_->status_calls.size(), 1u);
    EXPECT_EQ(client_.use_count(), 1) << "the client is let go";
  });
}

// The other clock is 40 ms ahead of this one.
TEST_F(HealthTest, HeartbeatsTellByHowMuchClocksDiffer) {
  constexpr int64_t kMilli = 1'000'000, kAhead = 40 * kMilli;
  client_->holds_status = true;
  const auto answer_after = [&](int64_t there_ms, int64_t back_ms) {
    Pass(there_ms);
    Answer(TaskStatus{.self = kPs, .wall_ns = env_.WallMicros() * 1'000 + kAhead});
    Pass(back_ms);
    client_->AnswerHeld();
  };
  Watching([&] {
    Watch("s");
    EXPECT_FALSE(monitor_->peers()[0].clock.has_value());
    Pass(1'000);  // the first heartbeat
    answer_after(6, 2);
    const auto first = monitor_->peers()[0].clock;
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->offset_ns, kAhead + 2 * kMilli);
    EXPECT_EQ(first->error_ns, 4 * kMilli + ClockOffset::kResolutionNanos);
    monitor_->ReadClocks();
    answer_after(1, 1);
    const auto second = monitor_->peers()[0].clock;
    EXPECT_EQ(second->offset_ns, kAhead);
    EXPECT_EQ(second->error_ns, 1 * kMilli + ClockOffset::kResolutionNanos);
  });
}

TEST_F(HealthTest, AMissingClockIsNoMissedHeartbeat) {
  Watching([&] {
    const auto health = Watch("s");
    Answer(DeadlineExceeded("no route"));
    for (int i = 0; i < 10; ++i) monitor_->ReadClocks();
    EXPECT_EQ(monitor_->peers()[0].misses, 0);
    EXPECT_TRUE(health->ok());
    Answer(Aborted("has restarted"));
    monitor_->ReadClocks();
    EXPECT_TRUE(health->ok()) << "heartbeats tell";
    Answer(TaskStatus{.self = kPs});
  });
}

TEST_F(HealthTest, AnswersMayComeAfterTheMonitorHasGone) {
  client_->holds_status = true;
  Watching([&] {
    Watch("s");
    Pass(1'500);
  });
  Answer(Aborted("has restarted"));
  client_->AnswerHeld();
  EXPECT_THAT(reported_, ElementsAre());
}

}  // namespace
}  // namespace penstock

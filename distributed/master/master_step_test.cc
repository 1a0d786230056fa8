// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master_step.h"

#include "core/base/error_origin.h"
#include "core/runtime/testing/sim_test.h"
#include "distributed/master/health.h"
#include "distributed/worker/testing/fake_worker_client.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

constexpr int64_t kStep = 7;

class MasterStepTest : public SimTest {
 protected:
  // Starts a step with parts in `tasks` tasks, whose graphs have the numbers 100, 101, ... The
  // tasks are watched by `monitor`, unless null.
  void Start(int tasks, MasterStep::Args args = {}, HealthMonitor* monitor = nullptr) {
    auto session = std::make_shared<SessionTasks>();
    session->session_deleted = true;  // nothing to deregister
    for (int i = 0; i < tasks; ++i) {
      clients_.push_back(std::make_shared<FakeWorkerClient>());
      clients_.back()->run_error = i < static_cast<int>(fails_.size()) ? fails_[i] : OkStatus();
      session->list.push_back({.id = Id(i), .client = clients_.back()});
      if (monitor == nullptr) continue;
      session->list.back().health =
          monitor->Watch(Id(i), clients_.back(), "s", [](HealthMonitor::Loss, const Status&) {});
    }
    auto prepared = std::make_shared<PreparedStep>(CallableSpec{});
    prepared->session = "s";
    prepared->tasks = session;
    for (int i = 0; i < tasks; ++i) {
      prepared->parts.push_back({&session->list[i], static_cast<uint64_t>(100 + i)});
    }
    args.id = kStep;
    step_ = std::make_shared<MasterStep>(
        prepared, args,
        MasterStep::Services{.env = &env_, .timer = timer_.get(), .threads = &scheduler_});
    step_->Start(Done([this](const Status& status) {
      ended_ = status;
      ended_ms_ = NowMs();
    }));
  }
  static TaskId Id(int i) {
    return {.name = StrCat("/job:ps/replica:0/task:", i),
            .address = StrCat("a:", i),
            .incarnation = static_cast<uint64_t>(i + 1)};
  }
  bool ended() const { return ended_.has_value(); }
  FakeWorkerClient& client(int i) { return *clients_[i]; }

  std::vector<Status> fails_;  // by task: the error with which its part ends at once
  std::vector<std::shared_ptr<FakeWorkerClient>> clients_;
  std::shared_ptr<MasterStep> step_;
  std::optional<Status> ended_;
  int64_t ended_ms_ = -1;
};

TEST_F(MasterStepTest, EndsWithTheLastPart) {
  Simulate([&] {
    Start(2);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(client(i).run_calls.size(), 1u);
      const FakeWorkerClient::RunCall& call = client(i).run_calls[0];
      EXPECT_EQ(call.args.session, "s");
      EXPECT_EQ(call.args.graph, 100u + i);
      EXPECT_EQ(call.args.step_id, kStep);
      EXPECT_TRUE(call.args.may_start_here) << "a quick part is not worth a hand-over";
      EXPECT_EQ(call.options.incarnation, i + 1u);
    }
    client(1).EndStep(kStep, OkStatus());
    EXPECT_FALSE(ended());
    client(0).EndStep(kStep, OkStatus());
    EXPECT_EQ(ended_, OkStatus());
    EXPECT_THAT(client(0).log, ElementsAre());
  });
}

TEST_F(MasterStepTest, APartWithFeedsDoesNotStartOnTheCallersThread) {
  Simulate([&] {
    const Tensor fed = Tensor::Scalar(1);
    Start(1, {.feeds = absl::MakeConstSpan(&fed, 1)});
    EXPECT_FALSE(client(0).run_calls[0].args.may_start_here) << "it may take long";
    client(0).EndStep(kStep, OkStatus());
  });
}

TEST_F(MasterStepTest, TheFirstFailureAbortsTheOthersAndIsTheStepsError) {
  Simulate([&] {
    Start(3);
    client(1).EndStep(kStep, OutOfRange("end of input"));
    const std::string aborted =
        "AbortStep 7: OUT_OF_RANGE: From /job:ps/replica:0/task:1:\nend of input";
    EXPECT_THAT(client(0).log, ElementsAre(aborted));
    EXPECT_THAT(client(1).log, ElementsAre()) << "it has ended";
    EXPECT_THAT(client(2).log, ElementsAre(aborted));
    client(0).EndStep(kStep, Cancelled("a consequence"));
    EXPECT_FALSE(ended()) << "a part still runs";
    client(2).EndStep(kStep, OkStatus());
    EXPECT_EQ(ended_, WithTask(OutOfRange("From /job:ps/replica:0/task:1:\nend of input"),
                               "/job:ps/replica:0/task:1"));
  });
}

TEST_F(MasterStepTest, TheErrorOfTheOnlyTaskStandsAlone) {
  Simulate([&] {
    Start(1);
    client(0).EndStep(kStep, OutOfRange("end of input"));
    EXPECT_EQ(ended_, OutOfRange("end of input"));
  });
}

TEST_F(MasterStepTest, PartsDoNotBeginAfterAFailure) {
  fails_ = {Unavailable("connection refused")};
  Simulate([&] {
    Start(3);
    EXPECT_EQ(ended_, WithTask(Unavailable("From /job:ps/replica:0/task:0:\nconnection refused"),
                               "/job:ps/replica:0/task:0"));
    EXPECT_TRUE(client(1).run_calls.empty());
    EXPECT_TRUE(client(2).run_calls.empty());
  });
}

TEST_F(MasterStepTest, ACancelledCallerEndsIt) {
  Cancellation cancellation;
  Simulate([&] {
    Start(2, {.cancellation = &cancellation});
    cancellation.Cancel(Cancelled("had enough"));
    EXPECT_THAT(client(0).log, ElementsAre()) << "not on the canceller's thread";
    Pass(1);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(client(i).log, ElementsAre("AbortStep 7: CANCELLED: had enough"));
      client(i).EndStep(kStep, Aborted("something else"));
    }
    EXPECT_EQ(ended_, Cancelled("had enough"));
  });
}

TEST_F(MasterStepTest, WithACancelledCallerNothingBegins) {
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("had enough"));
  Simulate([&] {
    Start(2, {.cancellation = &cancellation});
    EXPECT_EQ(ended_, Cancelled("had enough"));
    EXPECT_TRUE(client(0).run_calls.empty());
  });
}

// The tasks end a step at its deadline before the master does, because they know what
// it waits for.
TEST_F(MasterStepTest, TheDeadlineNamesTheTasksThatDidNotEnd) {
  Simulate([&] {
    Start(3, {.deadline_ns = env_.NowNanos() + 1'000'000'000});
    EXPECT_EQ(client(0).run_calls[0].args.deadline_ns, env_.NowNanos() + 1'000'000'000);
    Pass(500);
    client(1).EndStep(kStep, OkStatus());
    Pass(500 + MasterStep::kDeadlineSlackMs - 1);
    EXPECT_THAT(client(0).log, ElementsAre());
    Pass(2);
    const std::string aborted =
        "AbortStep 7: DEADLINE_EXCEEDED: step 7 did not end before its deadline; "
        "/job:ps/replica:0/task:0 at a:0, /job:ps/replica:0/task:2 at a:2 had not finished";
    EXPECT_THAT(client(0).log, ElementsAre(aborted));
    EXPECT_THAT(client(2).log, ElementsAre(aborted));
    client(0).EndStep(kStep, OkStatus());
    client(2).EndStep(kStep, OkStatus());
    EXPECT_EQ(ended_->code(), StatusCode::kDeadlineExceeded);
  });
}

TEST_F(MasterStepTest, AnAbortedPartIsNotWaitedForWithoutLimit) {
  Simulate([&] {
    Start(2);
    const int64_t begin = NowMs();
    step_->Abort(Unavailable("the session was closed"));
    Pass(MasterStep::kGraceMs - 1);
    client(1).EndStep(kStep, Cancelled("aborted"));
    EXPECT_FALSE(ended());
    Pass(10);
    EXPECT_THAT(client(0).log, Contains("AbandonStep 7"));
    EXPECT_EQ(ended_, Unavailable("the session was closed"));
    EXPECT_EQ(ended_ms_ - begin, MasterStep::kGraceMs);
  });
}

TEST_F(MasterStepTest, TheFirstAbortCounts) {
  Simulate([&] {
    Start(1);
    step_->Abort(Cancelled("first"));
    step_->Abort(Cancelled("second"));
    EXPECT_THAT(client(0).log, ElementsAre("AbortStep 7: CANCELLED: first"));
    client(0).EndStep(kStep, OkStatus());
    step_->Abort(Cancelled("third"));
    EXPECT_EQ(client(0).log.size(), 1u);
    EXPECT_EQ(ended_, Cancelled("first"));
  });
}

// If a task has not received the abort, it would run its part of the step as long as its session
// lives.
TEST_F(MasterStepTest, AnAbortThatIsLostIsRepeatedWithTheHeartbeats) {
  Simulate([&] {
    HealthMonitor monitor({.interval_ms = 1'000}, env_, *timer_);
    Start(2, {}, &monitor);
    for (int i = 0; i < 2; ++i) client(i).status = TaskStatus{.self = Id(i)};
    client(0).abort_answer = DeadlineExceeded("no route");
    step_->Abort(Cancelled("had enough"));
    for (int i = 0; i < 2; ++i) client(i).EndStep(kStep, Cancelled("abandoned"));
    EXPECT_TRUE(ended());
    client(0).abort_answer = OkStatus();
    Pass(5'000);
    const std::string abort = "AbortStep 7: CANCELLED: had enough";
    EXPECT_THAT(client(0).log, ElementsAre(abort, abort));
    EXPECT_THAT(client(1).log, ElementsAre(abort));
  });
}

TEST_F(MasterStepTest, ALostTaskIsNotWaitedFor) {
  Simulate([&] {
    Start(2);
    TaskId restarted = Id(0);
    restarted.incarnation = 99;
    step_->TaskLost(restarted, Aborted("of no concern"));
    EXPECT_THAT(client(1).log, ElementsAre());
    step_->TaskLost(Id(0), Unavailable("ps 0 is gone"));
    EXPECT_FALSE(client(0).Runs(kStep));
    EXPECT_THAT(client(1).log, ElementsAre("AbortStep 7: UNAVAILABLE: ps 0 is gone"));
    EXPECT_THAT(client(1).log, Not(Contains("AbandonStep 7")));
    client(1).EndStep(kStep, Cancelled("aborted"));
    EXPECT_EQ(ended_, WithTask(Unavailable("ps 0 is gone"), "/job:ps/replica:0/task:0"));
  });
}

// A step that has ended leaves no timer or callback behind: the caller may destroy its
// Cancellation.
TEST_F(MasterStepTest, LeavesNothingBehind) {
  Simulate([&] {
    {
      Cancellation cancellation;
      Start(1, {.deadline_ns = env_.NowNanos() + 1'000'000'000, .cancellation = &cancellation});
      client(0).EndStep(kStep, OkStatus());
      cancellation.Cancel(Cancelled("too late"));
    }
    EXPECT_EQ(step_.use_count(), 1);
    Pass(5'000);
    EXPECT_THAT(client(0).log, ElementsAre());
    EXPECT_EQ(ended_, OkStatus());
  });
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master_session.h"

#include "core/base/testing/durations.h"
#include "distributed/master/testing/fake_tasks_test.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kDayMs = 24 * 3'600'000;

class MasterSessionTest : public FakeTasksTest {};

TEST_F(MasterSessionTest, BeginsAndEndsInAllTasks) {
  InSession([&] {
    EXPECT_THAT(worker_->log, ElementsAre("CreateSession s"));
    EXPECT_THAT(ps_->log, ElementsAre("CreateSession s"));
  });
  EXPECT_THAT(worker_->log, ElementsAre("CreateSession s", "DeleteSession s"));
  EXPECT_THAT(ps_->log, ElementsAre("CreateSession s", "DeleteSession s"));
}

TEST_F(MasterSessionTest, ATaskThatRefusesEndsItInTheOthers) {
  ps_->create_answer = Unavailable("shuts down");
  Simulate([&] { EXPECT_EQ(Create({}).status(), Unavailable("shuts down")); });
  EXPECT_THAT(worker_->log, ElementsAre("CreateSession s", "DeleteSession s"));
}

TEST_F(MasterSessionTest, WrongOptionsAreRefusedBeforeATaskIsCalled) {
  Simulate([&] {
    EXPECT_EQ(Create({.disabled_passes = {"nope"}}).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Create({.placement = "nope"}).status().code(), StatusCode::kInvalidArgument);
  });
  EXPECT_THAT(worker_->log, ElementsAre());
}

TEST_F(MasterSessionTest, ExtendCountsVersions) {
  InSession([&] {
    const auto nothing = [](Graph*) { return OkStatus(); };
    EXPECT_EQ(session_->version(), 1);
    EXPECT_EQ(*session_->Extend(1, nothing), 2);
    EXPECT_EQ(*session_->Extend(-1, nothing), 3);
    EXPECT_EQ(session_->Extend(1, nothing).status(),
              Aborted("Current version is 3 but caller expected 1."));
    const auto fails = [](Graph*) { return InvalidArgument("no graph"); };
    EXPECT_EQ(session_->Extend(3, fails).status(), InvalidArgument("no graph"));
    EXPECT_EQ(session_->version(), 3);
  });
}

TEST_F(MasterSessionTest, EveryStepHasAnIdOfItsOwn) {
  InSession([&] {
    const auto first = Begin({"both"}), second = Begin({"both"});
    ASSERT_EQ(ps_->run_calls.size(), 2u);
    const int64_t a = ps_->run_calls[0].args.step_id, b = ps_->run_calls[1].args.step_id;
    EXPECT_NE(a, b);
    EXPECT_EQ(worker_->run_calls[0].args.step_id, a) << "one id in all tasks";
    EXPECT_EQ(session_->running_steps().size(), 2u);
    EXPECT_EQ(session_->steps_begun(), 2u);
    for (const int64_t id : {b, a}) {
      ps_->EndStep(id, OkStatus());
      worker_->EndStep(id, OkStatus());
    }
    EXPECT_EQ(first->ended, OkStatus());
    EXPECT_EQ(second->ended, OkStatus());
    EXPECT_TRUE(session_->running_steps().empty());
  });
}

TEST_F(MasterSessionTest, PredictsNoMoreOnceTheAskerHasGoneOrItIsClosed) {
  InSession([&] {
    Begin({"there"});
    End(*ps_);
    int asked = 0;
    const auto gone = [&] {
      ++asked;
      return false;
    };
    EXPECT_TRUE(session_->PredictSteps(5, gone).empty());
    EXPECT_EQ(asked, 1);
    const auto goes_on = [] { return true; };
    EXPECT_EQ(session_->PredictSteps(5, goes_on).size(), 1u);
    EXPECT_EQ(session_->Close(), OkStatus());
    EXPECT_TRUE(session_->PredictSteps(5, goes_on).empty());
  });
}

TEST_F(MasterSessionTest, DeadlinesAreTheStepsOrTheSessionsOrADay) {
  const auto deadline_ms = [&](const RunOptions& options) {
    const int64_t now_ns = env_.NowNanos();
    Begin({"there"}, options);
    const int64_t left_ns = ps_->run_calls.back().args.deadline_ns - now_ns;
    End(*ps_);
    return left_ns / kMilli;
  };
  InSession([&] {
    EXPECT_EQ(deadline_ms({}), kDayMs);
    EXPECT_EQ(deadline_ms({.timeout_ms = 70}), 70);
  });
  InSession([&] { EXPECT_EQ(deadline_ms({}), 400); }, {.operation_timeout_ms = 400});
}

TEST_F(MasterSessionTest, CloseAbortsWhatRunsAndWaits) {
  InSession([&] {
    const auto step = Begin({"both"});
    std::optional<Status> closed;
    const auto closing = scheduler_.StartThread(
        "close", [&] { closed = session_->Close(Cancelled("the client has gone")); });
    Pass(10);
    EXPECT_FALSE(closed.has_value());
    EXPECT_THAT(ps_->log, Contains(AllOf(StartsWith("AbortStep"), HasSubstr("the client has gone"),
                                         HasSubstr("; it was running a step of 'both'"))));
    End(*ps_, Cancelled("aborted"));
    Pass(10);
    EXPECT_FALSE(closed.has_value()) << "the worker's part runs";
    End(*worker_, Cancelled("aborted"));
    Pass(10);
    EXPECT_EQ(closed, OkStatus());
    ASSERT_TRUE(step->ended.has_value());
    EXPECT_EQ(step->ended->code(), StatusCode::kCancelled);
  });
}

TEST_F(MasterSessionTest, CloseDoesNotWaitForEver) {
  InSession(
      [&] {
        const auto step = Begin({"there"});
        const int64_t begin_ms = NowMs();
        const Status closed = session_->Close(Cancelled("enough"));
        EXPECT_EQ(closed.code(), StatusCode::kDeadlineExceeded) << closed;
        EXPECT_THAT(std::string(closed.message()),
                    AllOf(HasSubstr("a step of 'there' runs in "), HasSubstr("/job:ps")));
        EXPECT_NEAR(static_cast<double>(NowMs() - begin_ms), 500, 5);
        End(*ps_);
      },
      {.operation_timeout_ms = 500});
}

TEST_F(MasterSessionTest, AClosedSessionRefusesEverything) {
  InSession([&] {
    ASSERT_EQ(session_->Close(), OkStatus());
    const Status closed = FailedPrecondition("Session is closed.");
    EXPECT_EQ(Begin({"here"})->ended, closed);
    EXPECT_EQ(session_->Extend(-1, Whole).status(), closed);
    EXPECT_EQ(session_->MakeCallable({.targets = {"here"}}).status(), closed);
    EXPECT_EQ(session_->SetUpPartialRun({.targets = {"here"}}).status(), closed);
    EXPECT_TRUE(ps_->run_calls.empty());
  });
}

TEST_F(MasterSessionTest, CallablesRunUntilTheyAreReleased) {
  InSession([&] {
    const auto callable = session_->MakeCallable({.targets = {"there"}}, {.timeout_ms = 30});
    ASSERT_TRUE(callable.ok()) << callable.status();
    MasterSession::AsyncRun run;
    std::optional<Status> ended;
    const auto note = [&] { return Done([&](const Status& status) { ended = status; }); };
    const int64_t now_ns = env_.NowNanos();
    session_->RunCallableAsync(*callable, &run, note());
    ASSERT_EQ(ps_->run_calls.size(), 1u);
    EXPECT_EQ(ps_->run_calls[0].args.deadline_ns, now_ns + 30 * kMilli);
    End(*ps_);
    EXPECT_EQ(ended, OkStatus());

    EXPECT_EQ(session_->ReleaseCallable(*callable), OkStatus());
    const Status gone =
        InvalidArgument("callable ", *callable, " was never made or has been released");
    EXPECT_EQ(session_->ReleaseCallable(*callable), gone);
    session_->RunCallableAsync(*callable, &run, note());
    EXPECT_EQ(ended, gone);
    EXPECT_EQ(ps_->run_calls.size(), 1u);
  });
}

TEST_F(MasterSessionTest, AStepThatRunsIsNoIdleSession) {
  InSession([&] {
    Pass(100);
    EXPECT_GE(session_->idle_ns(), 100 * kMilli);
    Begin({"there"});
    Pass(100);
    EXPECT_EQ(session_->idle_ns(), 0);
    End(*ps_);
    EXPECT_EQ(session_->idle_ns(), 0) << "it has just ended";
    Pass(30);
    EXPECT_EQ(session_->idle_ns(), 30 * kMilli);
  });
}

TEST_F(MasterSessionTest, StepsAreCounted) {
  InSession([&] {
    Begin({"there"});
    Pass(200);
    End(*ps_);
    Begin({"there"});
    End(*ps_, OutOfRange("end of input"));
    EXPECT_THAT(counters_->failed(), ElementsAre(std::pair(StatusCode::kOutOfRange, 1u)));
    EXPECT_NEAR(counters_->seconds(), 0.2, 0.01);
    EXPECT_EQ(counters_->begun_in_closed_sessions(), 0u);
  });
  EXPECT_EQ(counters_->begun_in_closed_sessions(), 2u);
}

}  // namespace
}  // namespace penstock

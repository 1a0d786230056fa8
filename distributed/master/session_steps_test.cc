// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/session_steps.h"

#include <set>

#include "core/base/testing/durations.h"
#include "core/runtime/testing/sim_test.h"
#include "distributed/worker/testing/fake_worker_client.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kStepsPs[] = "/job:ps/replica:0/task:0";

// One prepared step, of the target "t", with a part in the task kStepsPs.
class SessionStepsTest : public SimTest {
 protected:
  void WithSteps(const std::function<void()>& body) {
    Simulate([&] {
      const auto tasks = std::make_shared<SessionTasks>();
      tasks->session_deleted = true;  // nothing to deregister
      tasks->list.push_back(
          {.id = {.name = kStepsPs, .address = "a:1", .incarnation = 1}, .client = ps_});
      prepared_ = std::make_shared<PreparedStep>(CallableSpec{.targets = {"t"}});
      prepared_->session = "s";
      prepared_->tasks = tasks;
      prepared_->parts.push_back({&tasks->list[0], 100});
      activity_ = std::make_shared<ClientActivity>(env_);
      steps_ = NewSteps();
      body();
      (void)steps_->Close();
      EXPECT_EQ(steps_->EndAll(Cancelled("end of test"), 0), OkStatus());
      steps_ = nullptr;
    });
  }
  std::shared_ptr<SessionSteps> NewSteps() {
    return std::make_shared<SessionSteps>(SessionSteps::Options{
        .session = "s",
        .services = {.env = &env_, .timer = timer_.get(), .threads = &scheduler_},
        .counters = counters_,
        .activity = activity_});
  }
  // Starts a step; its status is stored in `ended_`. Returns its id.
  int64_t Start(std::shared_ptr<Step>* own_step = nullptr) {
    const int64_t id = steps_->NextId();
    steps_->Start(prepared_, {.id = id, .own_step = own_step},
                  Done([this](const Status& status) { ended_ = status; }));
    return id;
  }

  const std::shared_ptr<FakeWorkerClient> ps_ = std::make_shared<FakeWorkerClient>();
  const std::shared_ptr<StepCounters> counters_ = std::make_shared<StepCounters>();
  std::shared_ptr<PreparedStep> prepared_;
  std::shared_ptr<ClientActivity> activity_;
  std::shared_ptr<SessionSteps> steps_;
  std::optional<Status> ended_;
};

TEST_F(SessionStepsTest, IdsDifferAlsoBetweenSessions) {
  WithSteps([&] {
    const auto others = NewSteps();
    std::set<int64_t> ids;
    for (int i = 0; i < 100; ++i) {
      ids.insert(steps_->NextId());
      ids.insert(others->NextId());
    }
    EXPECT_EQ(ids.size(), 200u);
    EXPECT_EQ(ids.count(0), 0u);
    EXPECT_EQ(steps_->begun(), 100u);
  });
}

TEST_F(SessionStepsTest, AStepRunsUntilItsPartsHaveEnded) {
  WithSteps([&] {
    const int64_t id = Start();
    ASSERT_EQ(steps_->running().size(), 1u);
    EXPECT_EQ(steps_->running()[0]->id(), id);
    EXPECT_TRUE(steps_->busy());
    Pass(200);
    EXPECT_FALSE(ended_.has_value());
    EXPECT_EQ(activity_->unused_ns(), 200 * kMilli);
    ps_->EndStep(id, OkStatus());
    EXPECT_EQ(ended_, OkStatus());
    EXPECT_THAT(steps_->running(), IsEmpty());
    EXPECT_FALSE(steps_->busy());
    EXPECT_EQ(activity_->unused_ns(), 0) << "its end is a use of the session";
    EXPECT_NEAR(counters_->seconds(), 0.2, 0.01);
    EXPECT_EQ(prepared_->times.count(), 1u);
  });
}

TEST_F(SessionStepsTest, APartialRunIsNeitherBusyNorTimed) {
  WithSteps([&] {
    std::shared_ptr<Step> own;
    const int64_t id = Start(&own);
    EXPECT_EQ(steps_->running().size(), 1u);
    EXPECT_FALSE(steps_->busy());
    const int64_t other = Start();
    EXPECT_TRUE(steps_->busy());
    ps_->EndStep(other, OkStatus());
    EXPECT_FALSE(steps_->busy());
    ps_->EndStep(id, OkStatus());
    EXPECT_EQ(prepared_->times.count(), 1u) << "the other step only";
  });
}

TEST_F(SessionStepsTest, AFailureIsCounted) {
  WithSteps([&] {
    ps_->EndStep(Start(), OutOfRange("end of input"));
    EXPECT_EQ(ended_->code(), StatusCode::kOutOfRange);
    EXPECT_THAT(counters_->failed(), ElementsAre(std::pair(StatusCode::kOutOfRange, 1u)));
    EXPECT_EQ(prepared_->times.count(), 0u);
  });
}

TEST_F(SessionStepsTest, ALostTaskEndsItsSteps) {
  WithSteps([&] {
    Start();
    const TaskId task = prepared_->parts[0].task->id;
    steps_->TaskLost({.name = "/job:ps/replica:0/task:1"}, Unavailable("another"));
    EXPECT_FALSE(ended_.has_value());
    steps_->TaskLost(task, Unavailable("it is gone"));
    Pass(1);
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(ended_->code(), StatusCode::kUnavailable) << *ended_;
  });
}

TEST_F(SessionStepsTest, NoStepBeginsAfterClose) {
  WithSteps([&] {
    EXPECT_EQ(steps_->CheckOpen(), OkStatus());
    EXPECT_TRUE(steps_->Close());
    EXPECT_FALSE(steps_->Close()) << "only the first call closes";
    const Status closed = FailedPrecondition("Session is closed.");
    EXPECT_EQ(steps_->CheckOpen(), closed);
    EXPECT_EQ(steps_->BeginLocal(*prepared_).status(), closed);
    Start();
    EXPECT_EQ(ended_, closed);
    EXPECT_TRUE(ps_->run_calls.empty());
  });
}

TEST_F(SessionStepsTest, EndAllAbortsAndWaits) {
  WithSteps([&] {
    const int64_t id = Start();
    const auto local = steps_->BeginLocal(*prepared_);
    ASSERT_TRUE(local.ok()) << local.status();
    ASSERT_TRUE(steps_->Close());
    std::optional<Status> all_ended;
    const auto closing = scheduler_.StartThread(
        "close", [&] { all_ended = steps_->EndAll(Cancelled("enough"), 1000); });
    Pass(10);
    const Status why = Cancelled("enough; it was running a step of 't'");
    EXPECT_EQ((*local)->cancellation.status(), why);
    EXPECT_THAT(ps_->log, ElementsAre(AllOf(HasSubstr("AbortStep"), HasSubstr(why.message()))));
    ps_->EndStep(id, why);
    Pass(10);
    EXPECT_FALSE(all_ended.has_value()) << "the local step runs";
    steps_->EndLocal(*local, 7, why);
    Pass(10);
    EXPECT_EQ(all_ended, OkStatus());
  });
}

TEST_F(SessionStepsTest, EndAllNamesWhatDoesNotEnd) {
  WithSteps([&] {
    const auto local = steps_->BeginLocal(*prepared_);
    ASSERT_TRUE(local.ok()) << local.status();
    ASSERT_TRUE(steps_->Close());
    const int64_t begin_ms = NowMs();
    const Status late = steps_->EndAll(Cancelled("enough"), 500);
    EXPECT_EQ(NowMs() - begin_ms, 500);
    EXPECT_EQ(late, DeadlineExceeded("session s was closed, but did not end in time: "
                                     "a step of 't' runs in this process"));
    steps_->EndLocal(*local, 7, Cancelled("enough"));
  });
}

TEST_F(SessionStepsTest, ALocalStepIsUsedAgainWithoutItsCancellation) {
  WithSteps([&] {
    const auto first = steps_->BeginLocal(*prepared_);
    ASSERT_TRUE(first.ok()) << first.status();
    const auto meanwhile = steps_->BeginLocal(*prepared_);
    ASSERT_TRUE(meanwhile.ok()) << meanwhile.status();
    EXPECT_NE(*meanwhile, *first);
    (*first)->cancellation.Cancel(Cancelled("by the caller"));
    steps_->EndLocal(*first, 7, Cancelled("by the caller"));
    EXPECT_THAT(counters_->failed(), ElementsAre(std::pair(StatusCode::kCancelled, 1u)));
    const auto second = steps_->BeginLocal(*prepared_);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(*second, *first);
    EXPECT_FALSE((*second)->cancellation.cancelled());
    steps_->EndLocal(*second, 8, OkStatus());
    steps_->EndLocal(*meanwhile, 9, OkStatus());
  });
}

}  // namespace
}  // namespace penstock

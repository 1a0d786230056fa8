// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/partial_runs.h"

#include "core/runtime/testing/sim_test.h"
#include "distributed/worker/testing/fake_worker_client.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

// Each partial run feeds "a" and "b", and has one part, which is not in the master's task; the test
// ends this part.
class PartialRunsTest : public SimTest {
 protected:
  void WithRuns(const std::function<void()>& body) {
    Simulate([&] {
      const auto tasks = std::make_shared<SessionTasks>();
      tasks->session_deleted = true;  // nothing to deregister
      tasks->list.push_back({.id = {.name = "/job:ps/replica:0/task:0"}, .client = ps_});
      prepared_ =
          std::make_shared<PreparedStep>(CallableSpec{.feeds = {"a:0", "b:0"}, .targets = {"t"}},
                                         /*partial=*/true);
      prepared_->feeds = {{"a:0", DType::kFloat, PartialShape()},
                          {"b:0", DType::kFloat, PartialShape()}};
      prepared_->session = "s";
      prepared_->tasks = tasks;
      prepared_->parts.push_back({&tasks->list[0], 100});
      const MasterStep::Services services = {
          .env = &env_, .timer = timer_.get(), .threads = &scheduler_};
      steps_ = std::make_shared<SessionSteps>(
          SessionSteps::Options{.session = "s",
                                .services = services,
                                .activity = std::make_shared<ClientActivity>(env_)});
      runs_ = std::make_shared<PartialRuns>(PartialRuns::Options{
          .session = "s", .client_device = "d", .services = services, .steps = steps_});
      body();
      runs_ = nullptr;
      steps_ = nullptr;
    });
  }
  std::string Begin(std::shared_ptr<void> hold = nullptr) {
    const auto handle = runs_->Begin(prepared_, /*deadline_ns=*/0, std::move(hold));
    CHECK_OK(handle.status());
    return *handle;
  }
  // Makes the following partial runs have neither feeds nor fetches.
  void LeaveOutNames() {
    const auto step =
        std::make_shared<PreparedStep>(CallableSpec{.targets = {"t"}}, /*partial=*/true);
    step->session = "s";
    step->tasks = prepared_->tasks;
    step->parts = prepared_->parts;
    prepared_ = step;
  }
  // Feeds some of the placeholders; the instalment's status is stored in `ended_`.
  void Feed(const std::string& handle, const std::vector<std::string>& names,
            const RunOptions& options = {}) {
    Feeds feeds;
    for (const std::string& name : names) feeds.emplace_back(name, Tensor::Scalar(1.0f));
    ended_.reset();
    runs_->Run(handle, options, feeds, {}, &outputs_,
               Done([this](const Status& status) { ended_ = status; }));
  }
  // Ends the step that began last.
  void End(const Status& status) { ps_->EndStep(ps_->run_calls.back().args.step_id, status); }
  static Status Unknown(const std::string& handle) {
    return InvalidArgument("Must run PartialRunSetup before performing partial runs: '", handle,
                           "' is no partial run, or one that has ended");
  }

  const std::shared_ptr<FakeWorkerClient> ps_ = std::make_shared<FakeWorkerClient>();
  std::shared_ptr<PreparedStep> prepared_;
  std::shared_ptr<SessionSteps> steps_;
  std::shared_ptr<PartialRuns> runs_;
  std::vector<Tensor> outputs_;
  std::optional<Status> ended_;
};

TEST_F(PartialRunsTest, AreForgottenAfterTheLastInstalment) {
  WithRuns([&] {
    const std::string handle = Begin();
    Feed(handle, {"a"});
    EXPECT_EQ(ended_, OkStatus());
    Feed(handle, {"b"});
    EXPECT_FALSE(ended_.has_value()) << "the last instalment ends with the step";
    End(OkStatus());
    EXPECT_EQ(ended_, OkStatus());
    Feed(handle, {"b"});
    EXPECT_EQ(ended_, Unknown(handle));
  });
}

TEST_F(PartialRunsTest, AFailedOneIsForgottenOnceItsClientKnows) {
  WithRuns([&] {
    const std::string handle = Begin();
    End(OutOfRange("end of input"));
    Feed(handle, {"a"});
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(ended_->code(), StatusCode::kOutOfRange) << *ended_;
    Feed(handle, {"a"});
    EXPECT_EQ(ended_, Unknown(handle));
  });
}

TEST_F(PartialRunsTest, RequestsThatAreRefusedChangeNothing) {
  WithRuns([&] {
    Feed("nope", {"a"});
    EXPECT_EQ(ended_, Unknown("nope"));
    const std::string handle = Begin();
    for (const RunOptions& options :
         {RunOptions{.trace = true}, RunOptions{.partition_graphs = true}}) {
      Feed(handle, {"a"}, options);
      EXPECT_EQ(ended_->code(), StatusCode::kUnimplemented) << *ended_;
    }
    Feed(handle, {"a"});
    EXPECT_EQ(ended_, OkStatus());
    End(OkStatus());
  });
}

TEST_F(PartialRunsTest, TheHoldIsReleasedBeforeTheClientLearnsOfTheEnd) {
  WithRuns([&] {
    auto hold = std::make_shared<int>(1);
    const std::weak_ptr<int> held = hold;
    const std::string handle = Begin(std::move(hold));
    EXPECT_FALSE(held.expired());
    bool released = false;
    runs_->Run(handle, {}, {{"a", Tensor::Scalar(1.0f)}, {"b", Tensor::Scalar(1.0f)}}, {},
               &outputs_, Done([&](const Status&) { released = held.expired(); }));
    End(OkStatus());
    EXPECT_TRUE(released);
  });
}

TEST_F(PartialRunsTest, AnInstalmentThatIsLateEndsTheStep) {
  WithRuns([&] {
    Feed(Begin(), {"a", "b"}, {.timeout_ms = 30});
    Pass(20);
    EXPECT_THAT(ps_->log, ElementsAre());
    Pass(20);
    EXPECT_THAT(ps_->log, ElementsAre(HasSubstr("were not there within 30 ms")));
    End(Cancelled("aborted"));
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(ended_->code(), StatusCode::kDeadlineExceeded) << *ended_;
  });
}

TEST_F(PartialRunsTest, ACancelledInstalmentEndsTheStep) {
  WithRuns([&] {
    Cancellation cancellation;
    Feed(Begin(), {"a", "b"}, {.cancellation = &cancellation});
    cancellation.Cancel(Cancelled("had enough"));
    Pass(1);
    EXPECT_THAT(ps_->log, ElementsAre(HasSubstr("had enough")));
    End(Cancelled("aborted"));
    EXPECT_EQ(ended_, Cancelled("had enough"));
  });
}

TEST_F(PartialRunsTest, AnInstalmentThatWasCancelledBeforeItBeganEndsTheStepAndIsForgotten) {
  WithRuns([&] {
    const std::string handle = Begin();
    Cancellation cancellation;
    cancellation.Cancel(Cancelled("had enough"));
    Feed(handle, {"a"}, {.cancellation = &cancellation});
    Pass(1);
    EXPECT_THAT(ps_->log, ElementsAre(HasSubstr("had enough")));
    EXPECT_FALSE(ended_.has_value()) << "the step has not ended";
    End(Cancelled("aborted"));
    EXPECT_EQ(ended_, Cancelled("had enough"));
    Feed(handle, {"a"});
    EXPECT_EQ(ended_, Unknown(handle));
  });
}

TEST_F(PartialRunsTest, TheOneOfAClientThatIsGoneIsEndedAndForgotten) {
  WithRuns([&] {
    const auto hold = std::make_shared<int>();
    const std::string handle = Begin(hold);
    runs_->End("another", Cancelled("the client is gone"));
    Pass(1);
    EXPECT_TRUE(ps_->log.empty());
    runs_->End(handle, Cancelled("the client is gone"));
    Pass(1);
    EXPECT_THAT(ps_->log, ElementsAre(HasSubstr("the client is gone")));
    Feed(handle, {"a"});
    EXPECT_EQ(ended_, Unknown(handle));
    EXPECT_EQ(hold.use_count(), 2);
    End(Cancelled("aborted"));
    EXPECT_EQ(hold.use_count(), 1);
    EXPECT_TRUE(steps_->running().empty());
  });
}

TEST_F(PartialRunsTest, OneThatIsUnusedForTooLongIsEnded) {
  WithRuns([&] {
    const std::string used = Begin(), unused = Begin();
    const std::string why = StrCat("partial run ", unused, " of session s was not used for 1 s");
    Pass(900);
    Feed(used, {"a"});
    runs_->EndUnused(kSecond);
    Pass(200);
    EXPECT_TRUE(ps_->log.empty());
    runs_->EndUnused(kSecond);
    Pass(1);
    EXPECT_THAT(ps_->log, ElementsAre(HasSubstr(why)));
    End(Cancelled("aborted"));
    EXPECT_EQ(steps_->running().size(), 1u);
    Feed(unused, {"a"});
    EXPECT_EQ(ended_, DeadlineExceeded(why));
    Feed(unused, {"a"});
    EXPECT_EQ(ended_, Unknown(unused));
    ps_->EndStep(ps_->run_calls.front().args.step_id, OkStatus());
  });
}

TEST_F(PartialRunsTest, OneThatWasEndedIsForgottenIfItStaysUnused) {
  WithRuns([&] {
    const std::string handle = Begin();
    for (const int passes : {1, 2}) {
      Pass(1100);
      runs_->EndUnused(kSecond);
      Pass(1);
      if (passes == 1) End(Cancelled("aborted"));
    }
    Feed(handle, {"a"});
    EXPECT_EQ(ended_, Unknown(handle));
  });
}

// No instalment can tell the client of such a run anything new.
TEST_F(PartialRunsTest, OneWithoutFeedsAndFetchesThatIsUnusedIsEnded) {
  WithRuns([&] {
    LeaveOutNames();
    const auto hold = std::make_shared<int>();
    const std::string handle = Begin(hold);
    Pass(1100);
    runs_->EndUnused(kSecond);
    Pass(1);
    EXPECT_THAT(ps_->log, ElementsAre(HasSubstr("was not used for 1 s")));
    End(Cancelled("aborted"));
    EXPECT_TRUE(steps_->running().empty());
    EXPECT_EQ(hold.use_count(), 1);
    Pass(1100);
    runs_->EndUnused(kSecond);
    Feed(handle, {});
    EXPECT_EQ(ended_, Unknown(handle));
    EXPECT_EQ(ps_->log.size(), 1u);
  });
}

TEST_F(PartialRunsTest, OneWithoutFeedsAndFetchesCountsUntilItHasEnded) {
  WithRuns([&] {
    LeaveOutNames();
    for (size_t i = 0; i < PartialRuns::kRunsMax; ++i) Begin();
    EXPECT_EQ(runs_->Begin(prepared_, 0, nullptr).status().code(), StatusCode::kResourceExhausted);
    End(OkStatus());
    Begin();
    for (const FakeWorkerClient::RunCall& call : ps_->run_calls) {
      ps_->EndStep(call.args.step_id, OkStatus());
    }
  });
}

TEST_F(PartialRunsTest, AnInstalmentThatWaitsIsAUse) {
  WithRuns([&] {
    const std::string handle = Begin();
    Feed(handle, {"a", "b"});
    Pass(5000);
    runs_->EndUnused(kSecond);
    Pass(1);
    EXPECT_TRUE(ps_->log.empty());
    End(OkStatus());
    EXPECT_EQ(ended_, OkStatus());
  });
}

TEST_F(PartialRunsTest, TooManyAreRefusedUntilOneHasEnded) {
  WithRuns([&] {
    for (size_t i = 0; i < PartialRuns::kRunsMax; ++i) Begin();
    const Status full =
        ResourceExhausted("session s has 10000 partial runs that were not finished");
    EXPECT_EQ(runs_->Begin(prepared_, 0, nullptr).status(), full);
    End(DeadlineExceeded("too late"));
    Begin();
    EXPECT_EQ(runs_->Begin(prepared_, 0, nullptr).status(), full);
    for (const FakeWorkerClient::RunCall& call : ps_->run_calls) {
      ps_->EndStep(call.args.step_id, OkStatus());
    }
  });
}

TEST_F(PartialRunsTest, NoneIsFoundAfterClearOrClose) {
  WithRuns([&] {
    const std::string handle = Begin();
    runs_->Clear();
    EXPECT_EQ(steps_->running().size(), 1u) << "Clear ends no step";
    Feed(handle, {"a"});
    EXPECT_EQ(ended_, Unknown(handle));
    End(OkStatus());
    ASSERT_TRUE(steps_->Close());
    Feed(handle, {"a"});
    EXPECT_EQ(ended_, FailedPrecondition("Session is closed."));
  });
}

}  // namespace
}  // namespace penstock

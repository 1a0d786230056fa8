// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/task_wait.h"

#include <limits>

#include "core/runtime/testing/sim_test.h"
#include "distributed/worker/testing/fake_worker_client.h"

namespace penstock {
namespace {

class TaskWaitTest : public SimTest {
 protected:
  static TaskId Id(int task) {
    return {.name = StrCat("/job:ps/replica:0/task:", task), .address = StrCat("a:", task)};
  }
  // Waits for two tasks, and asks each again after half a second.
  std::shared_ptr<TaskWait> Start(int64_t timeout_ms) {
    TaskWait::Options options{
        .timeout_ms = timeout_ms, .pause_ms = 500, .env = &env_, .timer = timer_.get()};
    for (int i = 0; i < 2; ++i) options.tasks.push_back({Id(i), clients_[i]});
    auto wait = std::make_shared<TaskWait>(std::move(options), [this](auto answers) {
      ++times_answered_;
      answered_ = std::move(answers);
    });
    wait->Start();
    return wait;
  }
  void Answers(int task) { clients_[task]->status = TaskStatus{.self = Id(task), .serving = true}; }

  std::shared_ptr<FakeWorkerClient> clients_[2] = {std::make_shared<FakeWorkerClient>(),
                                                   std::make_shared<FakeWorkerClient>()};
  int times_answered_ = 0;
  StatusOr<std::vector<TaskStatus>> answered_ = Internal("not yet");
};

TEST_F(TaskWaitTest, AnswersStandInTheOrderOfTheTasks) {
  Simulate([&] {
    Answers(1);
    Answers(0);
    Start(10'000);
  });
  ASSERT_TRUE(answered_.ok()) << answered_.status();
  ASSERT_EQ(answered_->size(), 2);
  EXPECT_EQ((*answered_)[0].self, Id(0));
  EXPECT_EQ((*answered_)[1].self, Id(1));
  EXPECT_EQ(times_answered_, 1);
  ASSERT_EQ(clients_[0]->status_calls.size(), 1u);
  EXPECT_TRUE(clients_[0]->status_calls[0].question.want_devices);
}

TEST_F(TaskWaitTest, OnlyTheSilentAreAskedAgain) {
  Simulate([&] {
    Answers(0);
    clients_[1]->status = Unavailable("nobody is there");
    const auto wait = Start(10'000);
    Pass(1'600);
    EXPECT_EQ(times_answered_, 0);
    const auto unanswered = wait->unanswered();
    ASSERT_EQ(unanswered.size(), 1u);
    EXPECT_EQ(unanswered[0].first, Id(1));
    EXPECT_EQ(unanswered[0].second, Unavailable("nobody is there"));
    EXPECT_EQ(clients_[0]->status_calls.size(), 1u);
    EXPECT_EQ(clients_[1]->status_calls.size(), 4u) << "at 0, 500, 1000 and 1500 ms";
    Answers(1);
    Pass(500);
    EXPECT_EQ(times_answered_, 1);
    EXPECT_TRUE(answered_.ok()) << answered_.status();
  });
}

TEST_F(TaskWaitTest, TheReplicaThatServesIsTheTask) {
  Simulate([&] {
    TaskWait::Options options{
        .timeout_ms = 10'000, .pause_ms = 500, .env = &env_, .timer = timer_.get()};
    options.tasks.push_back(
        {.id = Id(0), .client = clients_[0], .other = Id(1), .other_client = clients_[1]});
    const auto wait = std::make_shared<TaskWait>(std::move(options), [this](auto answers) {
      ++times_answered_;
      answered_ = std::move(answers);
    });
    clients_[0]->status = TaskStatus{.self = Id(0), .serving = false};
    clients_[1]->status = Unavailable("nobody is there");
    wait->Start();
    Pass(600);
    EXPECT_EQ(times_answered_, 0) << "it follows";
    Answers(0);
    Answers(1);
    Pass(500);
    EXPECT_EQ(times_answered_, 0) << "both cannot be";
    clients_[0]->status = Unavailable("nobody is there");
    Pass(500);
    EXPECT_EQ(times_answered_, 1);
  });
  ASSERT_TRUE(answered_.ok()) << answered_.status();
  ASSERT_EQ(answered_->size(), 1);
  EXPECT_EQ((*answered_)[0].self, Id(1));
}

TEST_F(TaskWaitTest, ATimeoutNamesTheSilentAndWhy) {
  Simulate([&] {
    Answers(0);
    clients_[1]->status = Unavailable("connection refused");
    Start(1'200);
    Pass(5'000);
  });
  EXPECT_EQ(answered_.status(),
            DeadlineExceeded("CreateSession: no answer within 1200 ms from "
                             "/job:ps/replica:0/task:1 at a:1 (connection refused)"));
  EXPECT_EQ(times_answered_, 1);
}

TEST_F(TaskWaitTest, AQuestionTakesNoLongerThanIsLeft) {
  Simulate([&] {
    Start(2'600);
    Pass(5'000);
    std::vector<int64_t> timeouts;
    for (const auto& call : clients_[0]->status_calls) timeouts.push_back(call.options.timeout_ms);
    EXPECT_EQ(timeouts, (std::vector<int64_t>{2'000, 2'000, 1'600, 1'100, 600, 100}));
  });
}

TEST_F(TaskWaitTest, NoTimeoutIsTooLong) {
  Simulate([&] {
    const auto wait = Start(std::numeric_limits<int64_t>::max());
    Pass(600);
    EXPECT_EQ(times_answered_, 0);
    EXPECT_EQ(clients_[0]->status_calls.size(), 2u);
    wait->Cancel(Cancelled("enough"));
  });
}

TEST_F(TaskWaitTest, ACancelledWaitAnswersOnceAndAsksNoMore) {
  Simulate([&] {
    const auto wait = Start(10'000);
    Pass(600);
    wait->Cancel(Cancelled("the client has gone"));
    EXPECT_EQ(answered_.status(), Cancelled("the client has gone"));
    wait->Cancel(Cancelled("again"));
    Answers(0);
    Answers(1);
    Pass(5'000);
    EXPECT_EQ(times_answered_, 1);
    EXPECT_EQ(clients_[0]->status_calls.size(), 2u);
  });
}

TEST_F(TaskWaitTest, AnAnswerAfterTheCancelIsDropped) {
  Simulate([&] {
    clients_[1]->holds_status = true;
    Answers(0);
    const auto wait = Start(10'000);
    wait->Cancel(Cancelled("the client has gone"));
    Answers(1);
    clients_[1]->AnswerHeld();
    EXPECT_EQ(times_answered_, 1);
    EXPECT_EQ(answered_.status(), Cancelled("the client has gone"));
  });
}

}  // namespace
}  // namespace penstock

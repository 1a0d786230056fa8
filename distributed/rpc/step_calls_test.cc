// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/step_calls.h"

#include <memory>
#include <optional>

#include "core/base/testing/eventually.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/transport/transport_factory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A task that consists of a transport and its StepCalls.
class CallsTask {
 public:
  CallsTask(const std::string& protocol, const std::string& job) {
    transport_ = *TransportFactory::Global().Make(protocol, {.grpc = &host_.host()});
    host_.Start();
    id_ = {StrCat("/job:", job, "/replica:0/task:0"), host_.address(), Env::Real().RandomU64() | 1};
    calls_.emplace(id_, *transport_, Env::Real());
    calls_->Serve(
        [this](const wire::RunGraphRequest& request, StepCalls::Answer answer) {
          MutexLock lock(mu_);
          begun_.emplace_back(request.step_id(), std::move(answer));
        },
        [this](int64_t step_id) {
          MutexLock lock(mu_);
          aborted_.push_back(step_id);
        });
    CHECK_OK(transport_->Serve(id_, calls_->steps()));
  }
  ~CallsTask() { Stop(); }
  void Stop() {
    transport_->Stop();
    host_.Stop();
  }

  const TaskId& id() const { return id_; }
  TaskName name() const { return *TaskName::Parse(id_.name); }
  StepCalls& calls() { return *calls_; }
  std::vector<int64_t> aborted() {
    MutexLock lock(mu_);
    return aborted_;
  }
  // Waits for a request; returns its step and the function that answers it.
  std::pair<uint64_t, StepCalls::Answer> AwaitRequest() {
    CHECK(Eventually([&] {
      MutexLock lock(mu_);
      return !begun_.empty();
    }));
    MutexLock lock(mu_);
    auto first = std::move(begun_.front());
    begun_.erase(begun_.begin());
    return first;
  }

 private:
  TaskId id_;
  Mutex mu_;
  std::vector<std::pair<uint64_t, StepCalls::Answer>> begun_ ABSL_GUARDED_BY(mu_);
  std::vector<int64_t> aborted_ ABSL_GUARDED_BY(mu_);
  std::optional<StepCalls> calls_;
  std::unique_ptr<Transport>
      transport_;  // outlives the server, with which its service may be registered
  TestHost host_;
};

class StepCallsTest : public testing::TestWithParam<const char*> {
 protected:
  // How a step has ended at its master.
  struct Outcome {
    Mutex mu;
    std::optional<Status> status ABSL_GUARDED_BY(mu);
    std::optional<Status> get() {
      MutexLock lock(mu);
      return status;
    }
  };
  bool Run(uint64_t step_id, Outcome* outcome) { return Run(step_id, worker_->id(), outcome); }
  bool Run(uint64_t step_id, const TaskId& worker, Outcome* outcome) {
    wire::RunGraphRequest request;
    request.set_step_id(step_id);
    request.set_incarnation(worker.incarnation);
    StepCalls::Ended ended = [outcome](const Status& status, wire::RunGraphResponse& response) {
      MutexLock lock(outcome->mu);
      outcome->status = status.ok() && response.has_error() ? Internal("refused") : status;
    };
    return master_.calls().Run(worker_->name(), request, &ended);
  }
  // Connects both ways; returns whether a request can be sent.
  bool Connect(uint64_t step_id, Outcome* outcome) {
    return Eventually([&] {
      master_.calls().Connect(worker_->id());
      worker_->calls().Connect(master_.id());
      return Run(step_id, outcome);
    });
  }

  CallsTask master_{GetParam(), "worker"};
  std::optional<CallsTask> worker_{std::in_place, GetParam(), "ps"};
};

TEST_P(StepCallsTest, ARequestIsAnswered) {
  Outcome first, second;
  EXPECT_FALSE(Run(1, &first)) << "the tasks are not connected yet";
  ASSERT_TRUE(Connect(2, &first));
  ASSERT_TRUE(Run(3, &second));
  auto [a, answer_a] = worker_->AwaitRequest();
  auto [b, answer_b] = worker_->AwaitRequest();
  EXPECT_EQ(a, 2);
  EXPECT_EQ(b, 3);
  wire::RunGraphResponse failed;
  failed.mutable_error()->set_message("it went wrong");
  answer_b(failed);
  ASSERT_TRUE(Eventually([&] { return second.get().has_value(); }));
  EXPECT_EQ(second.get()->code(), StatusCode::kInternal);
  EXPECT_FALSE(first.get().has_value());
  answer_a({});
  ASSERT_TRUE(Eventually([&] { return first.get().has_value(); }));
  EXPECT_TRUE(first.get()->ok()) << *first.get();
}

TEST_P(StepCallsTest, AStepThatIsAbandonedEndsAtOnceAndItsAnswerIsDropped) {
  Outcome outcome, next;
  ASSERT_TRUE(Connect(1, &outcome));
  master_.calls().Abandon(1);
  ASSERT_TRUE(outcome.get().has_value());
  EXPECT_TRUE(absl::IsCancelled(*outcome.get()));
  worker_->AwaitRequest().second({});
  ASSERT_TRUE(Run(2, &next));
  worker_->AwaitRequest().second({});
  ASSERT_TRUE(Eventually([&] { return next.get().has_value(); }));
  EXPECT_TRUE(next.get()->ok());
}

TEST_P(StepCallsTest, AWorkerThatIsLostFailsItsStepsAndIsNotAskedAgain) {
  Outcome outcome, none;
  ASSERT_TRUE(Connect(1, &outcome));
  auto begun = worker_->AwaitRequest();
  worker_->Stop();
  ASSERT_TRUE(Eventually([&] { return outcome.get().has_value(); }));
  EXPECT_TRUE(absl::IsUnavailable(*outcome.get())) << *outcome.get();
  EXPECT_THAT(std::string(outcome.get()->message()), HasSubstr("/job:ps/replica:0/task:0"));
  EXPECT_FALSE(Run(2, &none));
  EXPECT_FALSE(none.get().has_value());
}

TEST_P(StepCallsTest, AWorkerAbortsTheStepsOfAMasterThatIsLost) {
  Outcome outcome;
  ASSERT_TRUE(Connect(1, &outcome));
  auto [step_id, answer] = worker_->AwaitRequest();
  master_.Stop();
  ASSERT_TRUE(Eventually([&] { return !worker_->aborted().empty(); }));
  EXPECT_THAT(worker_->aborted(), ElementsAre(1));
  answer({});  // the master has gone: the answer is dropped
}

TEST_P(StepCallsTest, ARestartedWorkerIsConnectedAgain) {
  Outcome outcome, again;
  ASSERT_TRUE(Connect(1, &outcome));
  worker_.reset();
  ASSERT_TRUE(Eventually([&] { return outcome.get().has_value(); }));
  worker_.emplace(GetParam(), "ps");
  ASSERT_TRUE(Connect(2, &again));
  auto [step_id, answer] = worker_->AwaitRequest();
  EXPECT_EQ(step_id, 2);
  answer({});
  // Stops before `again` is destroyed.
  ASSERT_TRUE(Eventually([&] { return again.get().has_value(); }));
  EXPECT_TRUE(again.get()->ok()) << *again.get();
}

// A frozen worker was replaced by its follower, but the frozen process's connection is not lost
// yet.
TEST_P(StepCallsTest, AnotherProcessOfTheSameNameGetsNoRequestOverTheOldConnection) {
  Outcome outcome, none;
  ASSERT_TRUE(Connect(1, &outcome));
  auto [step_id, answer] = worker_->AwaitRequest();
  TaskId follower = worker_->id();
  ++follower.incarnation;
  EXPECT_FALSE(Run(2, follower, &none));
  master_.calls().Connect(follower);
  EXPECT_FALSE(Run(2, follower, &none));
  answer({});
  ASSERT_TRUE(Eventually([&] { return outcome.get().has_value(); }));
  EXPECT_TRUE(outcome.get()->ok()) << *outcome.get();
}

INSTANTIATE_TEST_SUITE_P(Protocols, StepCallsTest, testing::Values("shm", "grpc", "auto"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace penstock

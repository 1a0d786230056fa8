// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/gate_wait.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/runtime/testing/sim_test.h"
#include "distributed/worker/testing/test_worker.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// A gate that keeps the callbacks of steps until the test calls them.
class HoldingGate final : public StepGate {
 public:
  void StepBegins(int64_t) override {}
  void StepEnds(int64_t, const Status& status, Done done) override {
    if (!status.ok() || at_once) return std::move(done)(status);
    held.push_back(std::move(done));
    if (meanwhile) meanwhile();
  }
  const char* awaited() const override { return "the other one"; }
  void Answer(const Status& status) {
    for (Done& done : std::exchange(held, {})) std::move(done)(status);
  }

  std::vector<Done> held;
  bool at_once = false;             // whether StepEnds answers at once
  std::function<void()> meanwhile;  // called during StepEnds
};

class GateWaitTest : public SimTest {
 protected:
  void WithGate(const std::function<void()>& body) {
    Simulate([&] {
      worker_.emplace(env_, scheduler_, *timer_);
      worker().set_step_gate(&gate_);
      worker_->Begin("s");
      ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::PlusOne()), OkStatus());
      body();
      EXPECT_EQ(worker().steps().counts().running, 0);
      worker_.reset();
    });
  }
  Worker& worker() { return **worker_; }
  void Start(int64_t step, int64_t deadline_ns = 0) {
    worker().RunGraph({.session = "s",
                       .graph = 1,
                       .step_id = step,
                       .deadline_ns = deadline_ns,
                       .feeds = &feed_,
                       .num_feeds = 1,
                       .fetches = &fetch_,
                       .num_fetches = 1},
                      Done([this](const Status& status) { ended_ = status; }));
    Pass(1);
  }
  std::string Message() const { return std::string(ended_->message()); }

  HoldingGate gate_;
  const Tensor feed_ = Tensor::Scalar<int64_t>(1);
  Tensor fetch_;
  std::optional<TestWorker> worker_;
  std::optional<Status> ended_;
};

constexpr char kWaited[] =
    "; step 7 of /job:ps/replica:0/task:0 has run and waited for the other one: it is not known "
    "whether its changes will last";

TEST_F(GateWaitTest, TheGateEndsTheStep) {
  WithGate([&] {
    Start(7, env_.NowNanos() + 1'000'000'000);
    EXPECT_FALSE(ended_.has_value());
    const auto running = worker().steps().steps();
    ASSERT_EQ(running.size(), 1u);
    gate_.Answer(OkStatus());
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(*ended_, OkStatus());
    EXPECT_EQ(fetch_.scalar<int64_t>(), 2);
    Pass(2'000);
    EXPECT_FALSE(running[0]->cancellation().cancelled()) << "the deadline is of no step any more";
  });
}

TEST_F(GateWaitTest, AGateThatAnswersAtOnceEndsTheStepAtOnce) {
  WithGate([&] {
    gate_.at_once = true;
    Start(7, env_.NowNanos() + 1'000'000'000);
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(*ended_, OkStatus());
  });
}

TEST_F(GateWaitTest, AStepThatIsCancelledWhileTheGateIsToldEnds) {
  WithGate([&] {
    gate_.meanwhile = [&] { worker().AbortStep(7, Cancelled("the client has gone")); };
    Start(7, env_.NowNanos() + 1'000'000'000);
    Pass(1);
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(*ended_, Cancelled("the client has gone", kWaited));
    gate_.Answer(OkStatus());
  });
}

// When a step has ended, its worker, gate and timer may be destroyed. So the step must not end
// while the thread that reports to the gate still uses them, even if the gate answers on another
// thread.
TEST_F(GateWaitTest, AnAnswerOnAnotherThreadWaitsForBegin) {
  WithGate([&] {
    bool ended_meanwhile = false;
    gate_.meanwhile = [&] {
      scheduler_.Schedule([&] { gate_.Answer(OkStatus()); });
      Pass(1);
      EXPECT_TRUE(gate_.held.empty()) << "it has answered";
      ended_meanwhile = ended_.has_value();
    };
    Start(7, env_.NowNanos() + 1'000'000'000);
    Pass(2);
    EXPECT_FALSE(ended_meanwhile);
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(*ended_, OkStatus());
  });
}

TEST_F(GateWaitTest, TheDeadlineEndsTheWait) {
  WithGate([&] {
    const int64_t begun_ms = NowMs();
    Start(7, env_.NowNanos() + 500'000'000);
    while (!ended_.has_value() && NowMs() < begun_ms + 10'000) Pass(1);
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(ended_->code(), StatusCode::kDeadlineExceeded);
    EXPECT_THAT(Message(), HasSubstr(StrCat("step 7 did not end before its deadline", kWaited)));
    EXPECT_LE(NowMs(), begun_ms + 510);
    gate_.Answer(OkStatus());  // too late to have an effect
    EXPECT_EQ(ended_->code(), StatusCode::kDeadlineExceeded);
  });
}

TEST_F(GateWaitTest, CancellationEndsTheWait) {
  WithGate([&] {
    Start(7);
    worker().AbortStep(7, Cancelled("the client has gone"));
    Pass(1);
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(*ended_, Cancelled("the client has gone", kWaited));
    gate_.Answer(OkStatus());
  });
}

TEST_F(GateWaitTest, AClosedSessionEndsTheWait) {
  WithGate([&] {
    Start(7);
    worker().DeleteSession("s");
    Pass(1);
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(ended_->code(), StatusCode::kCancelled);
    gate_.Answer(Unavailable("shut down"));
  });
}

TEST_F(GateWaitTest, TheGatesErrorIsTheSteps) {
  WithGate([&] {
    Start(7, env_.NowNanos() + 1'000'000'000);
    gate_.Answer(Aborted("taken over"));
    ASSERT_TRUE(ended_.has_value());
    EXPECT_EQ(*ended_, Aborted("taken over"));
  });
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests a step of worker 1 that has a consumer with a similar name, worker 10. step_table_test.cc
// tests the table of steps.
#include "distributed/worker/step.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;

constexpr char kTask[] = "/job:worker/replica:0/task:1";
constexpr char kOther[] = "/job:worker/replica:0/task:10";

TaskName Name(const char* task) { return *TaskName::Parse(task); }

HashedKey StepKey(const std::string& tensor, const std::string& to = kTask,
                  const std::string& device = "/device:CPU:0") {
  return HashedKey(
      {.src_device = StrCat(kTask, "/device:CPU:0"), .dst_device = to + device, .tensor = tensor});
}

class RecordingSink final : public TensorSink {
 public:
  void Refuse(int64_t step_id, const Status& why) override { ADD_FAILURE() << why; }
  void Drop(int64_t step_id) override {
    dropped.push_back(step_id);
    held.clear();
  }
  std::vector<std::string> sent;  // "x", or "x dead"
  std::vector<HandedOver> held;
  std::vector<int64_t> dropped;

 private:
  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override {
    sent.push_back(StrCat(tensor.key().key().tensor, tensor.header().is_dead ? " dead" : ""));
    held.push_back(std::move(handed_over));
  }
};

class StepTest : public testing::Test {
 protected:
  ~StepTest() override {
    step_->Cancel(Cancelled("end of test"));
    sink_->held.clear();  // sent tensors keep the step alive, and the step keeps the sink alive
  }
  Status Send(const HashedKey& key) { return step_->Send(key, Tensor::Scalar(1.0f), false); }
  // Records how a Recv has ended so far: "none", an error, "dead" or "value".
  struct Receiver {
    std::string ended = "none";
    Rendezvous::Received Take() {
      return [this](const Status& status, const Tensor&, bool is_dead) {
        ended = !status.ok() ? status.ToString() : is_dead ? "dead" : "value";
      };
    }
  };
  void SendAllHeld() {
    for (auto& handed_over : std::exchange(sink_->held, {})) std::move(handed_over)();
  }

  const std::shared_ptr<Step> step_ = std::make_shared<Step>(7, Name(kTask), "session");
  const std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
};

TEST_F(StepTest, ReportsItsIdentity) {
  EXPECT_EQ(step_->id(), 7);
  EXPECT_EQ(step_->session(), "session");
}

// The name of this task, "/job:worker/replica:0/task:1", is a prefix of the name of task 10.
TEST_F(StepTest, ATensorForAnotherTaskLeaves) {
  step_->Subscribe(Name(kOther), sink_);
  ASSERT_EQ(Send(StepKey("x", kOther)), OkStatus());
  EXPECT_THAT(sink_->sent, ElementsAre("x"));
  Receiver receiver;
  ASSERT_EQ(Send(StepKey("y", kTask, "/device:GPU:3")), OkStatus());
  step_->Recv(StepKey("y", kTask, "/device:GPU:3"), receiver.Take());
  EXPECT_EQ(receiver.ended, "value");
  EXPECT_THAT(sink_->sent, ElementsAre("x")) << "all devices of its task are its own";
}

TEST_F(StepTest, EachConsumerHasItsOwnOutbox) {
  ASSERT_EQ(Send(StepKey("x", kOther)), OkStatus());
  ASSERT_EQ(Send(StepKey("y", "/job:ps/replica:0/task:0")), OkStatus());
  step_->Subscribe(Name(kOther), sink_);
  EXPECT_THAT(sink_->sent, ElementsAre("x"));
}

TEST_F(StepTest, DeadValuesTravelAsSuch) {
  ASSERT_EQ(step_->Send(StepKey("x", kOther), Tensor(), true), OkStatus());
  step_->Subscribe(Name(kOther), sink_);
  EXPECT_THAT(sink_->sent, ElementsAre("x dead"));
  Receiver receiver;
  step_->Recv(StepKey("y"), receiver.Take());
  step_->Deliver(StepKey("y"), Tensor(), true);
  EXPECT_EQ(receiver.ended, "dead");
}

TEST_F(StepTest, ADestinationIsAFullName) {
  EXPECT_EQ(Send(StepKey("x", "/job:ps/replica:0/task:0", "")),
            InvalidArgument("'/job:ps/replica:0/task:0' is not a full device name"));
  EXPECT_EQ(Send(StepKey("x", "", "")).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(step_->cancellation().cancelled());
}

// A producer that sends a key twice is broken: its values cannot be trusted.
TEST_F(StepTest, ATensorThatComesTwiceEndsTheStep) {
  Receiver other;
  step_->Recv(StepKey("y"), other.Take());
  step_->Deliver(StepKey("x"), Tensor::Scalar(1.0f), false);
  EXPECT_EQ(other.ended, "none");
  step_->Deliver(StepKey("x"), Tensor::Scalar(2.0f), false);
  EXPECT_TRUE(step_->cancellation().cancelled());
  EXPECT_EQ(other.ended, step_->cancellation().status().ToString());
}

TEST_F(StepTest, TheFirstCancelCounts) {
  step_->Cancel(Unavailable("ps 0 is gone"));
  step_->Cancel(Cancelled("a consequence"));
  EXPECT_EQ(step_->cancellation().status(), Unavailable("ps 0 is gone"));
  EXPECT_EQ(Send(StepKey("x", kOther)), Unavailable("ps 0 is gone"));
  EXPECT_EQ(Send(StepKey("x")), Unavailable("ps 0 is gone"));
  Receiver receiver;
  step_->Recv(StepKey("y"), receiver.Take());
  EXPECT_EQ(receiver.ended, Unavailable("ps 0 is gone").ToString());
}

TEST_F(StepTest, WhatIsOnItsWayIsDroppedWithTheStep) {
  step_->Subscribe(Name(kOther), sink_);
  ASSERT_EQ(Send(StepKey("x", kOther)), OkStatus());
  step_->Cancel(Cancelled("closed"));
  EXPECT_THAT(sink_->dropped, ElementsAre(7));
  const auto late = std::make_shared<RecordingSink>();
  step_->Subscribe(Name("/job:ps/replica:0/task:0"), late);
  EXPECT_EQ(late.use_count(), 1) << "the step keeps no sink any more";
}

TEST_F(StepTest, WhenSentCountsAllTensors) {
  Status status = Internal("not yet");
  step_->Subscribe(Name(kOther), sink_);
  ASSERT_EQ(Send(StepKey("x", kOther)), OkStatus());
  ASSERT_EQ(Send(StepKey("y", kOther)), OkStatus());
  std::move(sink_->held.back())();
  sink_->held.pop_back();
  step_->WhenSent(Done([&](const Status& s) { status = s; }));
  EXPECT_EQ(status, Internal("not yet"));
  SendAllHeld();
  EXPECT_EQ(status, OkStatus());
}

TEST_F(StepTest, WithNothingToSendWhenSentEndsAtOnce) {
  Status status = Internal("not yet");
  ASSERT_EQ(Send(StepKey("x")), OkStatus());
  step_->WhenSent(Done([&](const Status& s) { status = s; }));
  EXPECT_EQ(status, OkStatus());
}

TEST_F(StepTest, AfterAnAbortWhenSentEndsWithIt) {
  Status status;
  ASSERT_EQ(Send(StepKey("x", kOther)), OkStatus());
  step_->Abort(Aborted("ps 0 has restarted"));
  step_->WhenSent(Done([&](const Status& s) { status = s; }));
  EXPECT_EQ(status, Aborted("ps 0 has restarted"));
}

}  // namespace
}  // namespace penstock

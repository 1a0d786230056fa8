// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/step_table.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:1";

HashedKey Key(const std::string& tensor, const std::string& from, const std::string& to) {
  return HashedKey({.src_device = from + "/device:CPU:0",
                    .src_incarnation = 7,
                    .dst_device = to + "/device:CPU:0",
                    .tensor = tensor});
}

// A sink that records the tensors, refusals and drops that it gets.
class FakeSink : public TensorSink {
 public:
  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override {
    sent.emplace_back(tensor.step_id(), tensor.key().key().tensor);
    if (holds) {
      held.push_back(std::move(handed_over));
    } else {
      std::move(handed_over)();
    }
  }
  void Refuse(int64_t step_id, const Status& why) override { refused[step_id] = why; }
  void Drop(int64_t step_id) override { dropped.push_back(step_id); }

  bool holds = false;
  std::vector<HandedOver> held;
  std::vector<std::pair<int64_t, std::string>> sent;
  std::map<int64_t, Status> refused;
  std::vector<int64_t> dropped;
};

class StepTableTest : public testing::Test {
 protected:
  ~StepTableTest() override { table.AbortAll(Cancelled("end of test")); }
  std::shared_ptr<Step> Begin(int64_t id) {
    auto step = table.Begin(id, "session");
    CHECK_OK(step.status());
    return *std::move(step);
  }
  StepTable table{*TaskName::Parse(kPs), Env::Real(), DeadlineTimer::Real()};
  std::shared_ptr<FakeSink> sink = std::make_shared<FakeSink>();
};

TEST_F(StepTableTest, TensorsWaitForTheirConsumer) {
  const auto step = Begin(1);
  ASSERT_TRUE(step->Send(Key("a", kPs, kWorker), Tensor::Scalar(1.0f), false).ok());
  EXPECT_TRUE(sink->sent.empty());
  table.Subscribe(kWorker, 1, sink);
  ASSERT_TRUE(step->Send(Key("b", kPs, kWorker), Tensor::Scalar(1.0f), false).ok());
  using Sent = std::vector<std::pair<int64_t, std::string>>;
  EXPECT_EQ(sink->sent, (Sent{{1, "a"}, {1, "b"}}));
  table.End(1);
}

TEST_F(StepTableTest, SubscriptionsWaitForTheStep) {
  table.Subscribe(kWorker, 1, sink);
  EXPECT_EQ(table.counts().parked, 1);
  const auto step = Begin(1);
  EXPECT_EQ(table.counts().parked, 0);
  ASSERT_TRUE(step->Send(Key("a", kPs, kWorker), Tensor::Scalar(1.0f), false).ok());
  EXPECT_EQ(sink->sent.size(), 1);
  table.End(1);
}

TEST_F(StepTableTest, SubscriptionsAreBounded) {
  for (int64_t id = 1; id <= StepTable::kParkedPerConsumerMax; ++id) {
    table.Subscribe(kWorker, id, sink);
  }
  EXPECT_TRUE(sink->refused.empty());
  table.Subscribe(kWorker, 999'999, sink);
  EXPECT_EQ(sink->refused[999'999].code(), StatusCode::kResourceExhausted);
  // The limit does not affect another consumer.
  table.Subscribe("/job:worker/replica:0/task:2", 999'999, sink);
  EXPECT_EQ(table.counts().parked, StepTable::kParkedPerConsumerMax + 1);
}

TEST_F(StepTableTest, LateTensorsAreDropped) {
  Begin(1);
  table.End(1);
  table.Deliver(1, Key("a", kWorker, kPs), Tensor::Scalar(1.0f), false);
  table.Subscribe(kWorker, 1, sink);
  EXPECT_EQ(table.Begin(1, "session").status().code(), StatusCode::kAborted);
  EXPECT_EQ(table.counts().parked, 0);
  EXPECT_TRUE(sink->sent.empty());
}

TEST_F(StepTableTest, AStepRunsOnce) {
  Begin(1);
  EXPECT_EQ(table.Begin(1, "session").status().code(), StatusCode::kAlreadyExists);
  table.End(1);
}

TEST_F(StepTableTest, AbortOvertakesTheStep) {
  table.Subscribe(kWorker, 1, sink);
  table.Abort(1, Unavailable("ps 3 is gone"));
  EXPECT_EQ(sink->refused[1], Unavailable("ps 3 is gone"));
  EXPECT_EQ(table.Begin(1, "session").status().code(), StatusCode::kAborted);
}

TEST_F(StepTableTest, NamesThatAreNotOfTasksAreRefused) {
  const auto step = Begin(1);
  for (const char* name : {"", "worker 1", "/job:worker/task:1"}) {
    sink->refused.clear();
    table.Subscribe(name, 1, sink);
    EXPECT_EQ(sink->refused[1].code(), StatusCode::kInvalidArgument) << name;
  }
  const HashedKey nowhere({.src_device = "/device:CPU:0", .dst_device = kWorker, .tensor = "a"});
  EXPECT_EQ(step->Send(nowhere, Tensor::Scalar(1.0f), false),
            InvalidArgument("'", kWorker, "' is not a full device name"));
  table.End(1);
}

TEST_F(StepTableTest, AbortReachesWhatWaits) {
  const auto step = Begin(1);
  Status received;
  step->Recv(Key("a", kWorker, kPs), [&](Status s, Tensor, bool) { received = s; });
  table.Subscribe(kWorker, 1, sink);
  table.Abort(1, Unavailable("ps 3 is gone"));
  EXPECT_EQ(received, Unavailable("ps 3 is gone"));
  EXPECT_EQ(step->cancellation().status(), Unavailable("ps 3 is gone"));
  EXPECT_EQ(step->Send(Key("b", kPs, kWorker), Tensor::Scalar(1.0f), false),
            Unavailable("ps 3 is gone"));
  EXPECT_EQ(sink->dropped, std::vector<int64_t>{1});
  table.End(1);
}

TEST_F(StepTableTest, AStepThatHasLostATaskSaysWhatItWaitedFor) {
  const auto step = Begin(1);
  const auto ignore = [](Status, Tensor, bool) {};
  step->Recv(Key("edge_12_a_b:0", kWorker, kPs), ignore);
  step->Recv(Key("edge_3_here:0", kPs, kPs), ignore);
  const Status lost = Unavailable("lost the connection to ", kWorker, " at host:1");
  const Status expected =
      Unavailable(lost.message(), "; step 1 of ", kPs, " waited for 'a_b:0' from ", kWorker);
  EXPECT_EQ(table.Explain(1, lost), expected);
  table.Fail(1, lost);
  EXPECT_EQ(step->cancellation().status(), expected);
  EXPECT_EQ(table.Explain(1, Unavailable("another one")), expected) << "the first cause counts";
  table.End(1);
  EXPECT_EQ(table.Explain(1, lost), Unavailable(lost.message(), "; step 1 ran there"));
}

TEST_F(StepTableTest, ManyWaitsAreCounted) {
  const auto step = Begin(1);
  const auto ignore = [](Status, Tensor, bool) {};
  EXPECT_EQ(step->Describe(), StrCat("step 1 of ", kPs, " ran"));
  for (int i = 1; i < 6; ++i) step->Recv(Key(StrCat("edge_1_x:", i), kWorker, kPs), ignore);
  EXPECT_EQ(step->Describe(),
            StrCat("step 1 of ", kPs, " waited for 'x:1' from ", kWorker, ", 'x:2' from ", kWorker,
                   ", 'x:3' from ", kWorker, ", 2 more"));
  table.Abort(1, Cancelled("end of test"));
  table.End(1);
}

TEST_F(StepTableTest, KnowsWhenTheLastStepEnded) {
  EXPECT_EQ(table.counts().last_end_ns, 0);
  const int64_t before = Env::Real().NowNanos();
  Begin(1);
  table.End(1);
  EXPECT_GE(table.counts().last_end_ns, before);
  table.End(2);  // this step never began
}

TEST_F(StepTableTest, TensorsFromOtherTasksMeetTheirReceiver) {
  const auto step = Begin(1);
  float first = 0, second = 0;
  step->Recv(Key("a", kWorker, kPs), [&](Status, Tensor t, bool) { first = t.scalar<float>(); });
  table.Deliver(1, Key("a", kWorker, kPs), Tensor::Scalar(1.0f), false);
  table.Deliver(1, Key("b", kWorker, kPs), Tensor::Scalar(2.0f), false);
  step->Recv(Key("b", kWorker, kPs), [&](Status, Tensor t, bool) { second = t.scalar<float>(); });
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  table.End(1);
}

TEST_F(StepTableTest, WhenSentWaitsForTheLastTensor) {
  const auto step = Begin(1);
  sink->holds = true;
  table.Subscribe(kWorker, 1, sink);
  ASSERT_TRUE(step->Send(Key("a", kPs, kWorker), Tensor::Scalar(1.0f), false).ok());
  bool sent = false;
  step->WhenSent(Done([&](Status s) { sent = s.ok(); }));
  EXPECT_FALSE(sent);
  std::move(sink->held[0])();
  sink->held.clear();  // a sent tensor keeps the step alive, and the step keeps the sink alive
  EXPECT_TRUE(sent);
  table.End(1);
}

TEST_F(StepTableTest, WhenSentEndsWithTheAbort) {
  const auto step = Begin(1);
  ASSERT_TRUE(step->Send(Key("a", kPs, kWorker), Tensor::Scalar(1.0f), false).ok());
  Status status;
  step->WhenSent(Done([&](Status s) { status = s; }));
  table.AbortSession("another", Cancelled("closed"));
  EXPECT_TRUE(status.ok());
  table.AbortSession("session", Cancelled("closed"));
  EXPECT_EQ(status, Cancelled("closed"));
  table.End(1);
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/auto/auto_transport.h"

#include <deque>
#include <map>
#include <utility>

#include "distributed/transport/testing/recording_steps.h"
#include "distributed/transport/transport_factory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A transport that records its calls, and answers Reach when the test calls Answer.
class FakeTransport final : public Transport {
 public:
  FakeTransport(const std::string& name, Status serves) : name_(name), serves_(std::move(serves)) {}

  string_view protocol() const override { return name_; }
  TransportCapabilities capabilities() const override { return {.inline_bytes_max = 64}; }
  Status Serve(const TaskId&, TaskSteps&) override { return serves_; }
  void Reach(const TaskId&, Reached reached) override { asked.push_back(std::move(reached)); }
  void Subscribe(const TaskId& producer, int64_t step_id) override {
    subscribed.emplace_back(producer.name, step_id);
  }
  void Unsubscribe(const TaskId&, int64_t step_id) override { unsubscribed.push_back(step_id); }
  void Stop() override { stopped = true; }

  void Answer(const Status& status) {
    Reached reached = std::move(asked.front());
    asked.pop_front();
    std::move(reached)(status);
  }

  std::deque<Reached> asked;
  std::vector<std::pair<std::string, int64_t>> subscribed;
  std::vector<int64_t> unsubscribed;
  bool stopped = false;

 private:
  const std::string name_;
  const Status serves_;
};

class AutoTransportTest : public testing::Test {
 protected:
  void Begin(const Status& fast_serves = OkStatus()) {
    auto a = std::make_unique<FakeTransport>("fast", fast_serves);
    auto b = std::make_unique<FakeTransport>("slow", OkStatus());
    fast = a.get();
    slow = b.get();
    std::vector<std::unique_ptr<Transport>> transports;
    transports.push_back(std::move(a));
    transports.push_back(std::move(b));
    transport = std::make_unique<AutoTransport>(
        std::move(transports), [this](const std::string& line) { log.push_back(line); });
    ASSERT_TRUE(transport->Serve({"/job:worker/task:0", "w:1", 1}, steps).ok());
  }

  const TaskId ps{"ps", "p:1", 7};
  RecordingSteps steps;
  FakeTransport* fast = nullptr;
  FakeTransport* slow = nullptr;
  std::vector<std::string> log;
  std::unique_ptr<AutoTransport> transport;
};

TEST_F(AutoTransportTest, TheFirstRoadThatLeadsThere) {
  Begin();
  transport->Subscribe(ps, 1);
  transport->Subscribe(ps, 2);
  EXPECT_EQ(fast->asked.size(), 1);  // Reach is called only once for both steps
  EXPECT_THAT(fast->subscribed, IsEmpty());
  EXPECT_EQ(transport->ProtocolFrom("ps"), "");
  fast->Answer(OkStatus());
  EXPECT_EQ(transport->ProtocolFrom("ps"), "fast");
  EXPECT_EQ(transport->ProtocolFrom("worker"), "");
  EXPECT_THAT(fast->subscribed, ElementsAre(Pair("ps", 1), Pair("ps", 2)));
  transport->Subscribe(ps, 3);
  EXPECT_THAT(fast->asked, IsEmpty());
  EXPECT_EQ(fast->subscribed.back().second, 3);
  EXPECT_THAT(slow->subscribed, IsEmpty());
  EXPECT_THAT(log, ElementsAre("tensors from ps at p:1 come by fast"));
}

TEST_F(AutoTransportTest, ARoadThatDoesNotLeadThereIsLoggedOnce) {
  Begin();
  transport->Subscribe(ps, 1);
  fast->Answer(FailedPrecondition("it is on another host"));
  transport->Subscribe(ps, 2);
  EXPECT_THAT(slow->subscribed, ElementsAre(Pair("ps", 1), Pair("ps", 2)));
  EXPECT_THAT(fast->asked, IsEmpty());
  EXPECT_THAT(log, ElementsAre("tensors from ps at p:1 come by slow; not by fast: it is on another "
                               "host"));
}

TEST_F(AutoTransportTest, AProducerThatIsNotThereIsAskedAgain) {
  Begin();
  transport->Subscribe(ps, 1);
  fast->Answer(Unavailable("nobody answers"));
  EXPECT_THAT(slow->subscribed,
              ElementsAre(Pair("ps", 1)));  // the failed subscription fails the step
  EXPECT_THAT(log, IsEmpty());
  transport->Subscribe(ps, 2);
  fast->Answer(OkStatus());
  EXPECT_THAT(fast->subscribed, ElementsAre(Pair("ps", 2)));
}

TEST_F(AutoTransportTest, ARoadThatDoesNotServe) {
  Begin(FailedPrecondition("no memory"));
  EXPECT_THAT(log, ElementsAre("tensors do not go by fast: no memory"));
  transport->Subscribe(ps, 1);
  EXPECT_THAT(fast->asked, IsEmpty());
  EXPECT_THAT(slow->subscribed, ElementsAre(Pair("ps", 1)));
}

TEST_F(AutoTransportTest, AStepThatEndsWhileTheRoadIsAsked) {
  Begin();
  transport->Subscribe(ps, 1);
  transport->Subscribe(ps, 2);
  transport->Unsubscribe(ps, 1);
  fast->Answer(OkStatus());
  EXPECT_THAT(fast->subscribed, ElementsAre(Pair("ps", 2)));
  EXPECT_THAT(slow->unsubscribed, ElementsAre(1));
}

TEST_F(AutoTransportTest, AnotherIncarnationHasARoadOfItsOwn) {
  Begin();
  transport->Subscribe(ps, 1);
  TaskId restarted = ps;
  restarted.incarnation = 8;
  transport->Subscribe(restarted, 2);
  // Answers the first question, for which no step waits any more.
  fast->Answer(Aborted("restarted"));
  EXPECT_THAT(slow->subscribed, IsEmpty());
  fast->Answer(OkStatus());
  EXPECT_THAT(fast->subscribed, ElementsAre(Pair("ps", 2)));
}

TEST_F(AutoTransportTest, StepsThatWaitFailWhenTheTaskStops) {
  Begin();
  transport->Subscribe(ps, 1);
  transport->Stop();
  EXPECT_TRUE(fast->stopped && slow->stopped);
  fast->Answer(Cancelled("stopped"));
  EXPECT_THAT(slow->subscribed, IsEmpty());
  EXPECT_EQ(steps.WaitForFailure(1).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace penstock

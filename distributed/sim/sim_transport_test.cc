// SPDX-License-Identifier: Apache-2.0
//
// Tests the transport of the simulated network by the cases of the conformance suite
// (tests/transport) that apply to it. The suite itself waits on the real clock, but these messages
// need simulated time.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/op/attr.h"
#include "core/runtime/testing/sim_test.h"
#include "core/tensor/testing/test_variant.h"
#include "distributed/sim/sim_network.h"
#include "distributed/transport/testing/recording_steps.h"
#include "distributed/transport/testing/test_key.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// A time that is longer than any message of these tests takes.
constexpr int64_t kArrivalMs = 20;

// A task that consists of a transport, and of steps that record the tensors they receive.
struct SimEndpoint {
  SimEndpoint(SimNetwork& network, const std::string& job, uint64_t incarnation)
      : id{StrCat("/job:", job, "/replica:0/task:0"), job + "-0:2222", incarnation},
        transport(network.NewTransport()) {
    CHECK_OK(transport->Serve(id, steps));
  }
  ~SimEndpoint() { transport->Stop(); }

  const TaskId id;
  RecordingSteps steps;
  const std::unique_ptr<Transport> transport;
};

// Memory of a device that the CPU may be unable to write to, or that may be full.
class SimDeviceMemory final : public Allocator {
 public:
  SimDeviceMemory(bool host, bool full) : host_(host), full_(full) {}
  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override { return full_ ? nullptr : CpuAllocator().Allocate(bytes); }
  void Deallocate(void* pointer, size_t bytes) override {
    CpuAllocator().Deallocate(pointer, bytes);
  }
  AllocatorStats stats() const override { return {}; }
  bool host_accessible() const override { return host_; }

 private:
  const std::string name_ = "SimDeviceMemory";
  const bool host_, full_;
};

class SimTransportTest : public SimTest {
 protected:
  // Simulates a network with a ps and a worker.
  void Connected(const std::function<void()>& body) {
    Simulate([&] {
      network_ = std::make_unique<SimNetwork>(scheduler_, env_, *timer_, SimNetwork::Options());
      ps_ = std::make_unique<SimEndpoint>(*network_, "ps", 1);
      worker_ = std::make_unique<SimEndpoint>(*network_, "worker", 2);
      body();
      EXPECT_EQ(handed_over_, sent_);
      Pass(kArrivalMs);
      worker_ = nullptr;
      ps_ = nullptr;
      network_ = nullptr;
    });
  }
  // Returns the producer's end of a subscription of the worker.
  std::shared_ptr<TensorSink> Subscribe(SimEndpoint& producer, int64_t step_id) {
    worker_->transport->Subscribe(producer.id, step_id);
    Pass(kArrivalMs);
    return producer.steps.WaitForSink(worker_->id.name, step_id);
  }
  void Send(TensorSink& sink, int64_t step_id, const HashedKey& key, Tensor value,
            bool is_dead = false) {
    ++sent_;
    sink.Send(step_id, key, std::move(value), is_dead, [this] { ++handed_over_; });
  }
  // Returns the tensors that have arrived at the worker for the step, by key.
  std::map<std::string, RecordingSteps::Received> Arrived(int64_t step_id) {
    Pass(kArrivalMs);
    std::map<std::string, RecordingSteps::Received> by_key;
    for (const auto& received : worker_->steps.received()) {
      if (received.step_id != step_id) continue;
      EXPECT_TRUE(by_key.emplace(received.key.ToString(), received).second) << "arrived twice";
    }
    return by_key;
  }
  // Returns the first error of a step of the worker; OK if it has not failed.
  Status Failure(int64_t step_id) {
    Pass(kArrivalMs);
    return worker_->steps.has_failed(step_id) ? worker_->steps.WaitForFailure(step_id) : OkStatus();
  }
  // Checks that a step that is independent of others succeeds.
  void ExpectThatAStepWorks(int64_t step_id) {
    Send(*Subscribe(*ps_, step_id), step_id, TestKey("works"), Tensor::Scalar(7.0f));
    const auto arrived = Arrived(step_id);
    ASSERT_EQ(arrived.size(), 1u);
    EXPECT_EQ(arrived.begin()->second.value.scalar<float>(), 7);
    EXPECT_EQ(Failure(step_id), OkStatus());
  }

  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<SimEndpoint> ps_, worker_;
  int sent_ = 0, handed_over_ = 0;
};

TEST_F(SimTransportTest, ValuesOfAllKinds) {
  Connected([&] {
    const std::vector<Tensor> values = {Tensor::Scalar(1.5f),
                                        Tensor::Of<int64_t>({2, 2}, {1, 2, 3, -4}),
                                        Tensor(DType::kDouble, Shape({0, 7})),
                                        Tensor::Vector<std::string>({"", "abc"}),
                                        Tensor::Vector<bool>({true, false, true}),
                                        Tensor::Vector<int32_t>({1, 2, 3, 4}).Slice(1, 3),
                                        TestWords::Of({"a", std::string(100'000, 'y')})};
    const auto sink = Subscribe(*ps_, 1);
    for (size_t i = 0; i < values.size(); ++i) Send(*sink, 1, TestKey(StrCat("t", i)), values[i]);
    const auto arrived = Arrived(1);
    ASSERT_EQ(arrived.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto& received = arrived.at(TestKey(StrCat("t", i)).ToString());
      EXPECT_FALSE(received.is_dead);
      EXPECT_EQ(AttrValue(received.value), AttrValue(values[i])) << i;
      EXPECT_FALSE(received.value.SharesBufferWith(values[i])) << "capabilities: no zero_copy";
    }
  });
}

TEST_F(SimTransportTest, DeadValuesAndLoops) {
  Connected([&] {
    const auto sink = Subscribe(*ps_, 1);
    Send(*sink, 1, TestKey("without"), Tensor(), /*is_dead=*/true);
    Send(*sink, 1, TestKey("with"), Tensor::Scalar(1.0f), /*is_dead=*/true);
    Send(*sink, 1, TestKey("edge", 1), Tensor::Scalar(1.0f));
    Send(*sink, 1, TestKey("edge", 2), Tensor(), /*is_dead=*/true);
    const auto arrived = Arrived(1);
    ASSERT_EQ(arrived.size(), 4u);
    const auto at = [&](const HashedKey& key) { return arrived.at(key.ToString()); };
    EXPECT_TRUE(at(TestKey("without")).is_dead);
    EXPECT_FALSE(at(TestKey("without")).value.valid());
    EXPECT_TRUE(at(TestKey("with")).is_dead);
    EXPECT_EQ(at(TestKey("with")).value.scalar<float>(), 1);
    EXPECT_FALSE(at(TestKey("edge", 1)).is_dead);
    EXPECT_TRUE(at(TestKey("edge", 2)).is_dead);
  });
}

// capabilities().in_order is false: tensors may overtake each other, so that no test can rely on
// their order.
TEST_F(SimTransportTest, AnyTensorMayOvertakeAnyOther) {
  Connected([&] {
    EXPECT_FALSE(ps_->transport->capabilities().in_order);
    constexpr int kTensors = 200;
    const auto sink = Subscribe(*ps_, 1);
    for (int i = 0; i < kTensors; ++i) {
      Send(*sink, 1, TestKey("edge", 1 + i), Tensor::Scalar<int32_t>(i));
    }
    EXPECT_EQ(Arrived(1).size(), static_cast<size_t>(kTensors));
    int overtaken = 0, last = -1;
    for (const auto& received : worker_->steps.received()) {
      const int32_t i = received.value.scalar<int32_t>();
      EXPECT_EQ(received.key, TestKey("edge", 1 + i));
      overtaken += i < last;
      last = i;
    }
    EXPECT_GT(overtaken, kTensors / 4);
  });
}

TEST_F(SimTransportTest, TensorsLandWhereTheConsumerSays) {
  SimDeviceMemory memory(/*host=*/true, /*full=*/false);
  Connected([&] {
    worker_->steps.set_memory(memory);
    const auto sink = Subscribe(*ps_, 1);
    Send(*sink, 1, TestKey("plain"), Tensor::Scalar(2.5f));
    Send(*sink, 1, TestKey("none"), Tensor(DType::kFloat, Shape({0})));
    Send(*sink, 1, TestKey("dead"), Tensor(), /*is_dead=*/true);
    Send(*sink, 1, TestKey("text"), Tensor::Scalar<std::string>("abc"));
    {
      const auto arrived = Arrived(1);
      ASSERT_EQ(arrived.size(), 4u);
      for (const char* const name : {"plain", "none"}) {
        const Tensor& value = arrived.at(TestKey(name).ToString()).value;
        EXPECT_EQ(value.buffer()->allocator(), &memory) << name;
      }
      EXPECT_EQ(worker_->steps.allocators_asked(), 2);
    }
    worker_->steps.ForgetTensors();
  });
}

TEST_F(SimTransportTest, MemoryThatCannotBeHadFailsTheStepOnly) {
  SimDeviceMemory full(/*host=*/true, /*full=*/true), device(/*host=*/false, /*full=*/false);
  Connected([&] {
    worker_->steps.set_memory(full);
    Send(*Subscribe(*ps_, 1), 1, TestKey("large"), Tensor(DType::kFloat, Shape({1 << 18})));
    EXPECT_EQ(Failure(1).code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(Failure(1).message()), HasSubstr("large"));
    worker_->steps.set_memory(device);
    Send(*Subscribe(*ps_, 2), 2, TestKey("edge"), Tensor::Scalar(1.0f));
    EXPECT_EQ(Failure(2).code(), StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(Failure(2).message()), HasSubstr("SimDeviceMemory"));
    worker_->steps.set_memory(CpuAllocator());
    ExpectThatAStepWorks(3);
  });
}

TEST_F(SimTransportTest, ValuesThatCannotTravelAndRefusalsFailTheStepOnly) {
  Connected([&] {
    Send(*Subscribe(*ps_, 1), 1, TestKey("edge"), TestWords::Of({"secret"}));
    EXPECT_EQ(Failure(1), Unimplemented("sending 'edge': a secret does not travel"));
    const auto sink = Subscribe(*ps_, 2);
    Subscribe(*ps_, 3);
    sink->Refuse(2, OutOfRange("the end of the data"));
    EXPECT_EQ(Failure(2), OutOfRange("the end of the data"));
    EXPECT_EQ(Failure(3), OkStatus());
    ExpectThatAStepWorks(4);
  });
}

TEST_F(SimTransportTest, LateMessagesOfOldStepsAreDropped) {
  Connected([&] {
    const auto sink = Subscribe(*ps_, 1);
    Send(*sink, 1, TestKey("under way"), Tensor::Scalar(1.0f));
    worker_->transport->Unsubscribe(ps_->id, 1);
    Send(*sink, 1, TestKey("late"), Tensor::Scalar(1.0f));
    sink->Refuse(1, Internal("late"));
    EXPECT_TRUE(Arrived(1).empty());
    EXPECT_EQ(Failure(1), OkStatus());
    // The producer may get the subscription of a step only after the consumer has given up the
    // step.
    worker_->transport->Subscribe(ps_->id, 2);
    worker_->transport->Unsubscribe(ps_->id, 2);
    ExpectThatAStepWorks(3);
  });
}

TEST_F(SimTransportTest, AKilledProducerFailsTheStepsThatNeedIt) {
  Connected([&] {
    const auto sink = Subscribe(*ps_, 1);
    Subscribe(*ps_, 2);
    worker_->transport->Unsubscribe(ps_->id, 2);
    network_->Kill(SimEnd::Of(ps_->id), /*silent=*/false);
    Send(*sink, 1, TestKey("edge"), Tensor::Scalar(1.0f));
    EXPECT_EQ(Failure(1).code(), StatusCode::kUnavailable);
    EXPECT_THAT(std::string(Failure(1).message()), HasSubstr(ps_->id.ToString()));
    EXPECT_EQ(Failure(2), OkStatus()) << "it did not need the producer any more";
    EXPECT_TRUE(Arrived(1).empty()) << "the dead send nothing";
  });
}

TEST_F(SimTransportTest, ASilentHostIsNoticed) {
  Connected([&] {
    Subscribe(*ps_, 1);
    network_->Kill(SimEnd::Of(ps_->id), /*silent=*/true);
    EXPECT_EQ(Failure(1), OkStatus());
    Pass(SimNetwork::Options().keepalive_ns / 1'000'000);
    EXPECT_EQ(Failure(1).code(), StatusCode::kUnavailable);
  });
}

TEST_F(SimTransportTest, AProducerThatIsNotThereOrHasRestarted) {
  Connected([&] {
    const TaskId old = ps_->id;
    ps_ = nullptr;
    worker_->transport->Subscribe(old, 1);
    EXPECT_EQ(Failure(1).code(), StatusCode::kUnavailable);
    EXPECT_THAT(std::string(Failure(1).message()), HasSubstr(old.ToString()));

    ps_ = std::make_unique<SimEndpoint>(*network_, "ps", 3);
    worker_->transport->Subscribe(old, 2);
    EXPECT_EQ(Failure(2), Aborted(old.ToString(), " has restarted"));
    ExpectThatAStepWorks(3);
  });
}

TEST_F(SimTransportTest, AStoppedConsumerTakesNothingMore) {
  Connected([&] {
    const auto sink = Subscribe(*ps_, 1);
    Send(*sink, 1, TestKey("under way"), Tensor::Scalar(1.0f));
    worker_->transport->Stop();
    Send(*sink, 1, TestKey("late"), Tensor::Scalar(1.0f));
    sink->Refuse(1, Internal("too late"));
    EXPECT_TRUE(Arrived(1).empty());
    EXPECT_EQ(Failure(1), OkStatus());
  });
}

TEST_F(SimTransportTest, EightStepsAtATimeInBothDirections) {
  Connected([&] {
    constexpr int kSteps = 8, kTensors = 50;
    for (int64_t step_id = 1; step_id <= kSteps; ++step_id) {
      const auto there = Subscribe(*ps_, step_id);
      ps_->transport->Subscribe(worker_->id, step_id);
      Pass(kArrivalMs);
      const auto back = worker_->steps.WaitForSink(ps_->id.name, step_id);
      for (int i = 0; i < kTensors; ++i) {
        Send(*there, step_id, TestKey("edge", 1 + i), Tensor::Scalar(step_id * 1000 + i));
        Send(*back, step_id, TestKey("edge", 1 + i), Tensor::Scalar(-step_id * 1000 - i));
      }
    }
    Pass(kArrivalMs);
    for (auto& [end, sign] : {std::pair(worker_.get(), 1), std::pair(ps_.get(), -1)}) {
      const auto received = end->steps.received();
      EXPECT_EQ(received.size(), static_cast<size_t>(kSteps * kTensors));
      for (const auto& r : received) {
        const int64_t number = r.step_id * 1000 + static_cast<int64_t>(r.key.iteration()) - 1;
        EXPECT_EQ(r.value.scalar<int64_t>(), sign * number);
      }
    }
  });
}

}  // namespace
}  // namespace penstock

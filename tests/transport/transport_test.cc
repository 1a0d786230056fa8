// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite of transports: tests each transport that is linked into this program
// against the contract in transport.h.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/testing/eventually.h"
#include "core/op/attr.h"
#include "core/tensor/testing/test_variant.h"
#include "distributed/transport/testing/test_key.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/test_task.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// The size of the largest tensor; PENSTOCK_LARGE_TENSOR_BYTES in the environment overrides it.
constexpr int64_t kLargeTensorBytes = int64_t{64} << 20;

int64_t LargeTensorBytes() {
  const char* const text = std::getenv("PENSTOCK_LARGE_TENSOR_BYTES");
  int64_t bytes = kLargeTensorBytes;
  CHECK(text == nullptr || absl::SimpleAtoi(text, &bytes), "PENSTOCK_LARGE_TENSOR_BYTES=", text);
  return bytes;
}

Tensor Megabyte(int32_t first = 0) {
  Tensor t(DType::kInt32, Shape({1 << 18}));
  for (int32_t i = 0; i < 1 << 18; ++i) t.mutable_flat<int32_t>()[i] = first + i;
  return t;
}

class TransportTest : public testing::TestWithParam<std::string> {
 protected:
  // Checks that each sent tensor has been handed over exactly once.
  ~TransportTest() override { EXPECT_TRUE(AllHandedOver()) << handed_over << " of " << sent; }

  std::shared_ptr<TensorSink> Connect(int64_t step_id) {
    worker.transport().Subscribe(ps.id(), step_id);
    return ps.steps().WaitForSink(worker.id().name, step_id);
  }
  void Send(TensorSink& sink, int64_t step_id, const HashedKey& key, Tensor value,
            bool is_dead = false) {
    ++sent;
    sink.Send(step_id, key, std::move(value), is_dead, [this] { ++handed_over; });
  }
  bool AllHandedOver() {
    return Eventually([this] { return handed_over == sent; });
  }
  // Waits until no tensor has been handed over for 50 ms.
  void WaitUntilNothingIsHandedOver() {
    int before = -1;
    for (int steady = 0; steady < 5; ++steady) {
      if (before != handed_over) steady = 0;
      before = handed_over;
      Env::Real().SleepForNanos(10'000'000);
    }
  }
  // Checks that a step that is independent of others succeeds.
  void ExpectThatAStepWorks(int64_t step_id) {
    const auto sink = Connect(step_id);
    Send(*sink, step_id, TestKey("small"), Tensor::Scalar(7.0f));
    Send(*sink, step_id, TestKey("large"), Megabyte());
    int found = 0;
    for (size_t count = worker.steps().received().size(); found < 2; ++count) {
      found = 0;
      for (const auto& r : worker.steps().WaitForTensors(count)) {
        if (r.step_id != step_id) continue;
        ++found;
        EXPECT_EQ(AttrValue(r.value),
                  AttrValue(r.key == TestKey("small") ? Tensor::Scalar(7.0f) : Megabyte()));
      }
    }
  }

  std::atomic<int> sent = 0;
  std::atomic<int> handed_over = 0;
  TestTask ps{GetParam(), "ps"};
  TestTask worker{GetParam(), "worker"};
  const TransportCapabilities can = worker.transport().capabilities();
};

TEST_P(TransportTest, SaysItsProtocol) { EXPECT_EQ(ps.transport().protocol(), GetParam()); }

TEST_P(TransportTest, ValuesOfAllKinds) {
  const Tensor large = Megabyte();
  const Tensor values[] = {Tensor::Scalar(1.5f),
                           Tensor::Of<int64_t>({2, 2}, {1, 2, 3, -4}),
                           Tensor(DType::kDouble, Shape({0, 7})),
                           Tensor::Vector<std::string>({"", "abc", std::string(3'000'000, 'x')}),
                           Tensor::Vector<std::string>({}),
                           Tensor::Vector<bool>({true, false, true}),
                           large,
                           large.Slice(1, 200'000),
                           TestWords::Of({"a", std::string(3'000'000, 'y')})};
  const auto sink = Connect(1);
  for (size_t i = 0; i < std::size(values); ++i) Send(*sink, 1, TestKey(StrCat("t", i)), values[i]);
  const auto received = worker.steps().WaitForTensors(std::size(values));
  ASSERT_EQ(received.size(), std::size(values));
  for (const auto& r : received) {
    EXPECT_EQ(r.step_id, 1);
    EXPECT_FALSE(r.is_dead);
    const size_t i = std::stoul(r.key.key().tensor.substr(1));
    EXPECT_EQ(r.key, TestKey(StrCat("t", i)));
    EXPECT_EQ(AttrValue(r.value), AttrValue(values[i])) << i;
    EXPECT_EQ(r.value.SharesBufferWith(values[i]), can.zero_copy && IsPlain(r.value.dtype())) << i;
  }
}

TEST_P(TransportTest, DeadValuesAndLoops) {
  const auto sink = Connect(1);
  Send(*sink, 1, TestKey("without"), Tensor(), /*is_dead=*/true);
  Send(*sink, 1, TestKey("with"), Tensor::Scalar(1.0f), /*is_dead=*/true);
  Send(*sink, 1, TestKey("edge", 1), Tensor::Scalar(1.0f));
  Send(*sink, 1, TestKey("edge", 2), Tensor(), /*is_dead=*/true);
  const auto received = worker.steps().WaitForTensors(4);
  ASSERT_EQ(received.size(), 4);
  EXPECT_TRUE(received[0].is_dead);
  EXPECT_FALSE(received[0].value.valid());
  EXPECT_TRUE(received[1].is_dead);
  EXPECT_EQ(received[1].value.scalar<float>(), 1);
  EXPECT_EQ(received[2].key, TestKey("edge", 1));
  EXPECT_FALSE(received[2].is_dead);
  EXPECT_EQ(received[3].key, TestKey("edge", 2));
  EXPECT_TRUE(received[3].is_dead);
}

TEST_P(TransportTest, ManySmallTensorsArriveInOrder) {
  constexpr int kTensors = 20'000;
  const auto sink = Connect(1);
  for (int i = 0; i < kTensors; ++i) {
    Send(*sink, 1, TestKey(StrCat("edge", i % 10), 1 + i), Tensor::Scalar<int32_t>(i));
  }
  const auto received = worker.steps().WaitForTensors(kTensors);
  ASSERT_EQ(received.size(), kTensors);
  for (int i = 0; i < kTensors; ++i) {
    ASSERT_EQ(received[i].value.scalar<int32_t>(), i);
    ASSERT_EQ(received[i].key, TestKey(StrCat("edge", i % 10), 1 + i));
  }
}

TEST_P(TransportTest, TensorsOfOneSizeClassArriveInOrder) {
  EXPECT_TRUE(can.in_order) << "all transports that tasks can choose keep the order";
  const auto sink = Connect(1);
  constexpr int kTensors = 60;
  for (int i = 0; i < kTensors; ++i) {
    const size_t elements = i % 3 == 0 ? 1 << 18 : i % 3 == 1 ? 1 : can.inline_bytes_max / 4;
    Tensor value(DType::kInt32, Shape({static_cast<int64_t>(elements)}));
    for (int32_t& x : value.mutable_flat<int32_t>()) x = i;
    Send(*sink, 1, TestKey(StrCat("t", i)), value);
  }
  int last_inline = -1, last_large = -1;
  for (const auto& r : worker.steps().WaitForTensors(kTensors)) {
    const int i = std::stoi(r.key.key().tensor.substr(1));
    int& last = r.value.bytes() <= can.inline_bytes_max ? last_inline : last_large;
    EXPECT_GT(i, last);
    last = i;
  }
}

TEST_P(TransportTest, LargeTensor) {
  const int64_t elements = LargeTensorBytes() / 8;
  Tensor value(DType::kInt64, Shape({elements}));
  for (int64_t i = 0; i < elements; ++i) value.mutable_flat<int64_t>()[i] = i * 3;
  const auto sink = Connect(1);
  Send(*sink, 1, TestKey("large"), std::move(value));
  const auto received = worker.steps().WaitForTensors(1);
  const auto flat = received[0].value.flat<int64_t>();
  ASSERT_EQ(flat.size(), elements);
  for (int64_t i = 0; i < elements; ++i) ASSERT_EQ(flat[i], i * 3);
}

// An allocator other than the CPU's; counts allocations.
class OtherMemory final : public Allocator {
 public:
  explicit OtherMemory(bool host = true, bool exhausted = false)
      : host_(host), exhausted_(exhausted) {}
  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override {
    return exhausted_ ? nullptr : CpuAllocator().Allocate(bytes);
  }
  void Deallocate(void* pointer, size_t bytes) override {
    CpuAllocator().Deallocate(pointer, bytes);
  }
  AllocatorStats stats() const override { return {}; }
  bool host_accessible() const override { return host_; }

 private:
  const std::string name_ = "OtherMemory";
  const bool host_;
  const bool exhausted_;
};

TEST_P(TransportTest, TensorsLandWhereTheConsumerSays) {
  OtherMemory memory;
  worker.steps().set_memory(memory);
  const auto sink = Connect(1);
  Send(*sink, 1, TestKey("small"), Tensor::Scalar(2.5f));
  Send(*sink, 1, TestKey("large"), Megabyte(3));
  Send(*sink, 1, TestKey("none"), Tensor(DType::kFloat, Shape({0})));
  Send(*sink, 1, TestKey("dead"), Tensor(), /*is_dead=*/true);
  Send(*sink, 1, TestKey("text"), Tensor::Scalar<std::string>("abc"));
  int landed = 0;
  for (const auto& r : worker.steps().WaitForTensors(5)) {
    if (!r.value.valid() || !IsPlain(r.value.dtype())) continue;
    EXPECT_EQ(r.value.buffer()->allocator(), &memory) << r.key.ToString();
    ++landed;
    if (r.key == TestKey("small")) {
      EXPECT_EQ(r.value.scalar<float>(), 2.5f);
    }
    if (r.key == TestKey("large")) {
      EXPECT_EQ(AttrValue(r.value), AttrValue(Megabyte(3)));
    }
  }
  EXPECT_EQ(landed, 3);
  EXPECT_EQ(worker.steps().allocators_asked(), 3);
  // Received tensors use the memory that this test owns, so drop them first.
  worker.steps().ForgetTensors();
  worker.steps().set_memory(CpuAllocator());
}

TEST_P(TransportTest, MemoryThatCannotBeHadFailsTheStepOnly) {
  OtherMemory full(/*host=*/true, /*exhausted=*/true);
  worker.steps().set_memory(full);
  Send(*Connect(1), 1, TestKey("large"), Megabyte());
  EXPECT_EQ(worker.steps().WaitForFailure(1).code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(worker.steps().WaitForFailure(1).message()), HasSubstr("large"));
  worker.steps().set_memory(CpuAllocator());
  ExpectThatAStepWorks(2);
}

TEST_P(TransportTest, MemoryThatTheCpuCannotWriteFailsTheStepOnly) {
  OtherMemory device(/*host=*/false);
  worker.steps().set_memory(device);
  Send(*Connect(1), 1, TestKey("edge"), Tensor::Scalar(1.0f));
  EXPECT_EQ(worker.steps().WaitForFailure(1).code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(worker.steps().WaitForFailure(1).message()), HasSubstr("OtherMemory"));
  worker.steps().set_memory(CpuAllocator());
  ExpectThatAStepWorks(2);
}

TEST_P(TransportTest, AValueThatCannotTravelFailsTheStepOnly) {
  Send(*Connect(1), 1, TestKey("edge"), TestWords::Of({"secret"}));
  EXPECT_EQ(worker.steps().WaitForFailure(1),
            Unimplemented("sending 'edge': a secret does not travel"));
  ExpectThatAStepWorks(2);
}

TEST_P(TransportTest, ARefusalFailsTheStepOnly) {
  const auto sink = Connect(1);
  Connect(2);
  sink->Refuse(1, OutOfRange("the end of the data"));
  EXPECT_EQ(worker.steps().WaitForFailure(1), OutOfRange("the end of the data"));
  ExpectThatAStepWorks(3);
}

// Tests of Abort, in every state of a step.

TEST_P(TransportTest, AbortBeforeTheProducerKnowsTheStep) {
  worker.transport().Subscribe(ps.id(), 1);
  worker.transport().Unsubscribe(ps.id(), 1);
  ExpectThatAStepWorks(2);
}

TEST_P(TransportTest, AbortBeforeAnythingIsSent) {
  const auto sink = Connect(1);
  sink->Drop(1);
  worker.transport().Unsubscribe(ps.id(), 1);
  ExpectThatAStepWorks(2);
}

TEST_P(TransportTest, AbortAtTheProducerWhileTensorsWait) {
  const auto sink = Connect(1);
  worker.steps().Block();
  std::thread sender([&] {
    for (int i = 0; i < 64; ++i) Send(*sink, 1, TestKey(StrCat("t", i)), Megabyte());
  });
  worker.steps().WaitUntilStuck();
  sink->Drop(1);
  worker.steps().Unblock();
  sender.join();
  sink->Drop(1);
  EXPECT_TRUE(AllHandedOver());
  worker.transport().Unsubscribe(ps.id(), 1);
  ExpectThatAStepWorks(2);
}

TEST_P(TransportTest, AbortAtTheConsumerWhileTensorsArrive) {
  const auto sink = Connect(1);
  worker.steps().Block();
  std::thread sender([&] {
    for (int i = 0; i < 64; ++i) Send(*sink, 1, TestKey(StrCat("t", i)), Megabyte());
  });
  worker.steps().WaitUntilStuck();
  worker.transport().Unsubscribe(ps.id(), 1);
  worker.steps().Unblock();
  sender.join();
  EXPECT_TRUE(AllHandedOver());
  ExpectThatAStepWorks(2);
  for (const auto& r : worker.steps().received()) {
    // A tensor that was being read when the subscription was cancelled may still arrive.
    if (r.step_id == 1) {
      EXPECT_LT(std::stoi(r.key.key().tensor.substr(1)), 8);
    }
  }
}

TEST_P(TransportTest, AbortAfterTheLastTensor) {
  const auto sink = Connect(1);
  Send(*sink, 1, TestKey("edge"), Tensor::Scalar(1.0f));
  worker.steps().WaitForTensors(1);
  sink->Drop(1);
  worker.transport().Unsubscribe(ps.id(), 1);
  ExpectThatAStepWorks(2);
}

TEST_P(TransportTest, LateTensorsOfOldStepsAreDropped) {
  const auto sink = Connect(1);
  worker.transport().Unsubscribe(ps.id(), 1);
  Send(*sink, 1, TestKey("small"), Tensor::Scalar(1.0f));
  Send(*sink, 1, TestKey("large"), Megabyte());
  sink->Refuse(1, Internal("late"));
  EXPECT_TRUE(AllHandedOver());
  ExpectThatAStepWorks(2);
  EXPECT_EQ(worker.steps().received().size(), 2);
  EXPECT_FALSE(worker.steps().has_failed(1));
}

TEST_P(TransportTest, AStoppedProducerFailsTheStepsThatNeedIt) {
  const auto sink = Connect(1);
  Connect(2);
  ps.Stop();
  for (const int64_t step_id : {1, 2}) {
    const Status why = worker.steps().WaitForFailure(step_id);
    EXPECT_EQ(why.code(), StatusCode::kUnavailable) << why;
    EXPECT_THAT(std::string(why.message()), HasSubstr(ps.id().ToString()));
  }
  Send(*sink, 1, TestKey("edge"), Tensor::Scalar(1.0f));
  EXPECT_TRUE(AllHandedOver());
  worker.transport().Unsubscribe(ps.id(), 1);
}

TEST_P(TransportTest, AProducerThatStopsWhileItSends) {
  const auto sink = Connect(1);
  for (int i = 0; i < 64; ++i) Send(*sink, 1, TestKey(StrCat("t", i)), Megabyte(i));
  ps.Stop();
  EXPECT_EQ(worker.steps().WaitForFailure(1).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(AllHandedOver());
  for (const auto& r : worker.steps().received()) {  // each tensor is complete
    const int i = std::stoi(r.key.key().tensor.substr(1));
    EXPECT_EQ(AttrValue(r.value), AttrValue(Megabyte(i)));
  }
}

TEST_P(TransportTest, AProducerThatIsNotThere) {
  ps.Stop();
  worker.transport().Subscribe(ps.id(), 1);
  const Status why = worker.steps().WaitForFailure(1);
  EXPECT_EQ(why.code(), StatusCode::kUnavailable) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr(ps.id().ToString()));
}

TEST_P(TransportTest, AStoppedConsumerTakesNothingMore) {
  const auto sink = Connect(1);
  worker.Stop();
  Send(*sink, 1, TestKey("small"), Tensor::Scalar(1.0f));
  Send(*sink, 1, TestKey("large"), Megabyte());
  sink->Refuse(1, Internal("too late"));
  EXPECT_TRUE(AllHandedOver());
  EXPECT_TRUE(worker.steps().received().empty());
}

TEST_P(TransportTest, ARestartedProducerIsAnother) {
  Connect(1);
  ps.Stop();
  EXPECT_EQ(worker.steps().WaitForFailure(1).code(), StatusCode::kUnavailable);
  TestTask again(GetParam(), "ps", ps.id().address);
  Status why = Unavailable("not asked");
  for (int64_t step_id = 100; step_id < 200 && absl::IsUnavailable(why); ++step_id) {
    Env::Real().SleepForNanos(50'000'000);  // a connection may be waiting to reconnect
    worker.transport().Subscribe(ps.id(), step_id);
    why = worker.steps().WaitForFailure(step_id);
  }
  EXPECT_EQ(why.code(), StatusCode::kAborted) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr(ps.id().ToString()));
  EXPECT_THAT(std::string(why.message()), HasSubstr("restarted"));

  worker.transport().Subscribe(again.id(), 3);
  const auto sink = again.steps().WaitForSink(worker.id().name, 3);
  Send(*sink, 3, TestKey("edge"), Tensor::Scalar(1.0f));
  EXPECT_EQ(worker.steps().WaitForTensors(1)[0].step_id, 3);
  EXPECT_TRUE(AllHandedOver());  // wait before `again` is destroyed
}

TEST_P(TransportTest, AConsumerThatDoesNotReadHoldsTheProducerBack) {
  constexpr int kTensors = 128;
  const Tensor value = Megabyte();
  const auto sink = Connect(1);
  worker.steps().Block();
  std::thread sender([&] {
    for (int i = 0; i < kTensors; ++i) Send(*sink, 1, TestKey(StrCat("t", i)), value);
  });
  worker.steps().WaitUntilStuck();
  WaitUntilNothingIsHandedOver();
  EXPECT_LT(handed_over, kTensors / 2);  // the others are pending, held by reference
  worker.steps().Unblock();
  sender.join();
  EXPECT_EQ(worker.steps().WaitForTensors(kTensors).size(), kTensors);
}

TEST_P(TransportTest, EightStepsAtATimeOverOneEdge) {
  constexpr int kSteps = 8, kTensors = 100;
  std::vector<std::thread> steps;
  for (int64_t step_id = 1; step_id <= kSteps; ++step_id) {
    steps.emplace_back([this, step_id] {
      const auto sink = Connect(step_id);
      for (int i = 0; i < kTensors; ++i) {
        const int64_t elements = i % 10 == 0 ? 1 << 18 : 1;
        Tensor value(DType::kInt64, Shape({elements}));
        for (int64_t& x : value.mutable_flat<int64_t>()) x = step_id * 1000 + i;
        Send(*sink, step_id, TestKey("edge", 1 + i), value);
      }
    });
  }
  for (std::thread& step : steps) step.join();
  const auto received = worker.steps().WaitForTensors(kSteps * kTensors);
  ASSERT_EQ(received.size(), kSteps * kTensors);
  std::map<int64_t, int> counts;
  for (const auto& r : received) {
    ++counts[r.step_id];
    const int64_t expected = r.step_id * 1000 + static_cast<int64_t>(r.key.iteration()) - 1;
    for (const int64_t x : r.value.flat<int64_t>()) ASSERT_EQ(x, expected);
  }
  for (int64_t step_id = 1; step_id <= kSteps; ++step_id) EXPECT_EQ(counts[step_id], kTensors);
}

TEST_P(TransportTest, BothDirectionsAtOnce) {
  const auto there = Connect(1);
  ps.transport().Subscribe(worker.id(), 1);
  const auto back = worker.steps().WaitForSink(ps.id().name, 1);
  for (int i = 0; i < 20; ++i) {
    Send(*there, 1, TestKey(StrCat("t", i)), Megabyte());
    Send(*back, 1, TestKey(StrCat("t", i)), Megabyte());
  }
  EXPECT_EQ(worker.steps().WaitForTensors(20).size(), 20);
  EXPECT_EQ(ps.steps().WaitForTensors(20).size(), 20);
}

TEST_P(TransportTest, OneThatHasNotServedMayBeStopped) {
  TestHost host;
  const auto made = TransportFactory::Global().Make(GetParam(), {.grpc = &host.host()});
  ASSERT_TRUE(made.ok()) << made.status();
  host.Start();
  (*made)->Stop();
  host.Stop();
}

// Returns whether a task can serve the protocol on this host; some protocols need a device.
bool CanServe(const std::string& protocol) {
  RecordingSteps steps;
  TestHost host;
  const auto made = TransportFactory::Global().Make(protocol, {.grpc = &host.host()});
  CHECK_OK(made.status());
  host.Start();
  const TaskId self{"/job:ps/replica:0/task:0", host.address(), 1};
  const Status served = (*made)->Serve(self, steps);
  (*made)->Stop();
  host.Stop();
  if (served.ok()) return true;
  CHECK(absl::IsFailedPrecondition(served) || absl::IsResourceExhausted(served), served.ToString());
  std::fprintf(stderr, "SKIPPED: protocol %s: %s\n", protocol.c_str(),
               std::string(served.message()).c_str());
  return false;
}

// Returns the protocols to test. The environment variable PENSTOCK_TEST_PROTOCOLS ("verbs,grpc")
// selects some, which must then work.
std::vector<std::string> Protocols() {
  if (const char* const chosen = std::getenv("PENSTOCK_TEST_PROTOCOLS")) {
    const std::vector<std::string> protocols = absl::StrSplit(chosen, ',');
    for (const std::string& protocol : protocols) CHECK(CanServe(protocol), protocol);
    return protocols;
  }
  std::vector<std::string> protocols = TransportFactory::Global().protocols();
  std::erase_if(protocols, [](const std::string& protocol) { return !CanServe(protocol); });
  return protocols;
}

INSTANTIATE_TEST_SUITE_P(All, TransportTest, testing::ValuesIn(Protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace penstock

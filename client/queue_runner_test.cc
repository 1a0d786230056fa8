// SPDX-License-Identifier: Apache-2.0
#include "client/queue_runner.h"

#include <chrono>
#include <thread>

#include "client/input.h"
#include "client/testing/pipeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A requested stop ends all waits for a queue, both of producers and of consumers.
TEST(QueueRunners, AStopEndsWhatWaits) {
  Pipeline p;
  const Output full = RangeInputProducer(p.runners(), 10, {.capacity = 2});  // never ends
  const Output empty = CallIn(p.program(), "FIFOQueueV2", {},
                              {{"component_types", std::vector<DType>{DType::kInt32}}});
  const Output never = Take(empty, DType::kInt32);
  p.runners().Add({Call("QueueEnqueueV2", {full, Outputs{never}})}, {full}, 3);
  const Output next = Take(full, DType::kInt32);
  p.Start();
  EXPECT_TRUE(p.Next({next}).ok());
  const auto start = Clock::now();
  p.coordinator().RequestStop();
  EXPECT_TRUE(p.coordinator().Join().ok());
  EXPECT_LT(SecondsSince(start), 1);
  // A later dequeue finds the queue closed.
  for (;;) {
    const auto left = p.Next({next});
    if (left.ok()) continue;
    EXPECT_EQ(left.status().code(), StatusCode::kOutOfRange);
    break;
  }
}

// If one runner fails, all runners stop, and a step that waits for an element which will never come
// ends, too. Join returns the first error.
TEST(QueueRunners, AnErrorStopsAllAndIsToldOnce) {
  Pipeline p;
  const Output files = StringInputProducer(p.runners(), {"/nowhere/to/be/found"}, {});
  const Output lines = ReadRecord(CallIn(p.program(), "TextLineReaderV2", {}), files).value;
  const Outputs batch = Batch(p.runners(), {lines}, 4, {.threads = 3});
  RangeInputProducer(p.runners(), 10, {.capacity = 2});  // would never end
  const auto start = Clock::now();
  p.Start();
  const auto next = p.Next(batch);
  EXPECT_EQ(next.status().code(), StatusCode::kOutOfRange) << next.status();
  p.coordinator().RequestStop(next.status());
  const Status end = p.coordinator().Join();
  EXPECT_EQ(end.code(), StatusCode::kNotFound) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("/nowhere/to/be/found"));
  EXPECT_LT(SecondsSince(start), 5);
}

TEST(QueueRunners, TheEndOfTheInputEndsEverythingAtOnce) {
  Pipeline p;
  const Output number =
      Take(RangeInputProducer(p.runners(), 100, {.num_epochs = 1, .capacity = 4}), DType::kInt32);
  const Outputs first = Batch(p.runners(), {number}, 5, {.threads = 2, .capacity = 10});
  const Outputs second = Batch(p.runners(), first, 2, {.threads = 2, .capacity = 3});
  p.Start();
  int batches = 0;
  auto last = Clock::now();
  for (;; ++batches, last = Clock::now()) {
    const auto next = p.Next(second);
    if (next.ok()) continue;
    p.coordinator().RequestStop(next.status());
    break;
  }
  EXPECT_TRUE(p.coordinator().Join().ok());
  EXPECT_LT(SecondsSince(last), 1);
  EXPECT_EQ(batches, 10);
}

// A blocked dequeue holds no thread: with ten thousand of them the compute threads are still free.
TEST(QueueRunners, BlockedStepsKeepNobodyFromWorking) {
  Program program;
  const Output queue = CallIn(program, "FIFOQueueV2", {},
                              {{"component_types", std::vector<DType>{DType::kFloat}},
                               {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}}});
  constexpr int kBlocked = 10'000;
  Outputs taken;
  for (int i = 0; i < kBlocked; ++i) taken.push_back(Take(queue, DType::kFloat));
  const Output sum = AddN(taken);
  const Output x = Constant(program, Tensor::Scalar(2.0f));
  const Output other = x * x;
  const Output ones = Fill(Constant(program, Tensor::Vector<int32_t>({kBlocked})), x);
  const Output put = Call("QueueEnqueueManyV2", {queue, Outputs{ones}});
  auto session = *Session::New(program, "", {.optimize = false});
  StatusOr<Tensor> total = Unknown("not run");
  std::thread waiting([&] { total = session->Fetch(sum); });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(session->Fetch(other)->scalar<float>(), 4);
  ASSERT_TRUE(session->Execute(put).ok());
  waiting.join();
  ASSERT_TRUE(total.ok()) << total.status();
  EXPECT_EQ(total->scalar<float>(), 2.0f * kBlocked);

  // A deadline ends all waiting dequeue ops, and each puts back the elements that it has taken.
  const auto late = session->Run({}, {sum}, {}, {.timeout_ms = 200});
  EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded) << late.status();
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("QueueDequeueV2"));
}

}  // namespace
}  // namespace penstock::client

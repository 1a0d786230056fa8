// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/completion_loop.h"

#include <grpcpp/alarm.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/testing/eventually.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

std::unique_ptr<grpc::CompletionQueue> Queue() { return std::make_unique<grpc::CompletionQueue>(); }

// A gRPC operation that ends by itself, or when it is cancelled.
class AlarmOperation final : public Operation, public std::enable_shared_from_this<AlarmOperation> {
 public:
  AlarmOperation(CompletionLoop& loop, std::atomic<int>* ended, std::atomic<int>* destroyed)
      : loop_(loop), ended_(ended), destroyed_(destroyed) {}
  ~AlarmOperation() override { ++*destroyed_; }

  bool Start(std::chrono::milliseconds after) {
    if (!loop_.Begin(this)) return false;
    alarm_.Set(&loop_.queue(), std::chrono::system_clock::now() + after,
               event_.TagFor(shared_from_this()));
    return true;
  }
  void Cancel() override {
    cancelled_ = true;
    alarm_.Cancel();
  }

 private:
  void Ended(bool ok) {
    EXPECT_EQ(ok, !cancelled_);
    ++*ended_;
    loop_.End(this);
  }

  CompletionLoop& loop_;
  std::atomic<int>* const ended_;
  std::atomic<int>* const destroyed_;
  std::atomic<bool> cancelled_ = false;
  grpc::Alarm alarm_;
  EventOf<AlarmOperation> event_{&AlarmOperation::Ended};
};

void WaitFor(const std::atomic<int>& value, int expected) {
  EXPECT_TRUE(Eventually([&] { return value >= expected; }));
  EXPECT_EQ(value, expected);
}

TEST(CompletionLoopTest, EventsCallTheirObjectAndKeepItAlive) {
  CompletionLoop loop(Queue(), 2);
  std::atomic<int> ended = 0, destroyed = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(std::make_shared<AlarmOperation>(loop, &ended, &destroyed)
                    ->Start(std::chrono::milliseconds(i % 3)));
  }
  WaitFor(destroyed, 100);
  EXPECT_EQ(ended, 100);
  loop.Stop();
}

TEST(CompletionLoopTest, StopCancelsRemainingOperationsAndWaits) {
  CompletionLoop loop(Queue(), 1);
  std::atomic<int> ended = 0, destroyed = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        std::make_shared<AlarmOperation>(loop, &ended, &destroyed)->Start(std::chrono::hours(1)));
  }
  loop.Stop();
  EXPECT_EQ(ended, 10);
  EXPECT_EQ(destroyed, 10);
}

// An operation that ends as soon as it is cancelled, on another thread.
class NotedOperation final : public Operation {
 public:
  NotedOperation(CompletionLoop& loop, std::vector<const Operation*>* cancelled)
      : loop_(loop), cancelled_(cancelled) {}
  ~NotedOperation() override {
    if (ender_.joinable()) ender_.join();
  }
  void Cancel() override {
    cancelled_->push_back(this);
    // No operation may begin any more; Begin also shows that the loop's lock is free.
    EXPECT_FALSE(loop_.Begin(this));
    ender_ = std::thread([this] { loop_.End(this); });
  }

 private:
  CompletionLoop& loop_;
  std::vector<const Operation*>* const cancelled_;
  std::thread ender_;
};

TEST(CompletionLoopTest, StopCancelsInOrderOfBeginWithoutTheLock) {
  CompletionLoop loop(Queue(), 1);
  std::vector<const Operation*> begun, cancelled;
  std::deque<NotedOperation> operations;  // ordered by their addresses
  for (int i = 0; i < 100; ++i) operations.emplace_back(loop, &cancelled);
  for (int i = 0; i < 100; ++i) {
    NotedOperation& operation = operations[(i * 37) % 100];
    begun.push_back(&operation);
    ASSERT_TRUE(loop.Begin(&operation));
  }
  loop.Stop();
  EXPECT_EQ(cancelled, begun);
}

TEST(CompletionLoopTest, NothingBeginsOnceItStops) {
  CompletionLoop loop(Queue(), 1);
  loop.Stop();
  std::atomic<int> ended = 0, destroyed = 0;
  EXPECT_FALSE(std::make_shared<AlarmOperation>(loop, &ended, &destroyed)
                   ->Start(std::chrono::milliseconds(0)));
  EXPECT_EQ(destroyed, 1);
}

TEST(CompletionLoopTest, DestructionRequiresStop) {
  EXPECT_DEATH(CompletionLoop(Queue(), 1), "destroyed without Stop");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "core/tensor/caching_allocator.h"
#include "core/tensor/memory_account.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class MemoryAccountTest : public ::testing::Test {
 protected:
  MemoryAccountTest() { TakeRefusal(); }
  ~MemoryAccountTest() override {
    step_.Unref();
    session_.Unref();
    task_.Unref();
  }
  // A child of the process's account, whose own limit does not matter in these tests.
  MemoryAccount& task_ = *MemoryAccount::New("the task", 1000, MemoryAccount::Task());
  MemoryAccount& session_ = *MemoryAccount::New("session 7", 500, task_);
  MemoryAccount& step_ = *MemoryAccount::New("step 8", 0, session_);
};

TEST_F(MemoryAccountTest, AChargeCountsInAllAbove) {
  ASSERT_TRUE(step_.Charge(300));
  EXPECT_EQ(step_.in_use(), 300);
  EXPECT_EQ(session_.in_use(), 300);
  EXPECT_EQ(task_.in_use(), 300);
  EXPECT_EQ(step_.available(), 200);
  step_.Return(300);
  EXPECT_EQ(task_.in_use(), 0);
}

TEST_F(MemoryAccountTest, TheLimitItselfIsAllowed) {
  EXPECT_TRUE(step_.Charge(500));
  EXPECT_FALSE(step_.Charge(1));
  step_.Return(500);
}

TEST_F(MemoryAccountTest, ThePeakIsTheMostAtATime) {
  ASSERT_TRUE(step_.Charge(300));
  step_.Return(200);
  ASSERT_TRUE(session_.Charge(150));
  ASSERT_FALSE(step_.Charge(400));
  EXPECT_EQ(step_.peak(), 300) << "a refusal is not held";
  EXPECT_EQ(session_.peak(), 300);
  task_.ChargeAlways(700);
  EXPECT_EQ(task_.peak(), 950);
  task_.Return(700);
  task_.ResetPeak();
  EXPECT_EQ(task_.peak(), 250);
  session_.Return(150);
  step_.Return(100);
  EXPECT_EQ(task_.peak(), 250);
  EXPECT_EQ(session_.peak(), 300) << "it was not reset";
}

TEST_F(MemoryAccountTest, ARefusalChargesNothingAndSaysWhose) {
  ASSERT_TRUE(step_.Charge(300));
  EXPECT_FALSE(step_.Charge(201));
  EXPECT_EQ(step_.in_use(), 300);
  EXPECT_EQ(session_.in_use(), 300);
  EXPECT_EQ(task_.in_use(), 300);
  EXPECT_EQ(TakeRefusal(), ": session 7 may hold 500 bytes and holds 300");
  EXPECT_EQ(TakeRefusal(), "");
  step_.Return(300);
}

TEST_F(MemoryAccountTest, TheTasksLimitHoldsForAllSessions) {
  MemoryAccount& other = *MemoryAccount::New("session 9", 0, task_);
  ASSERT_TRUE(other.Charge(900));
  EXPECT_FALSE(step_.Charge(200));
  EXPECT_EQ(TakeRefusal(), ": the task may hold 1000 bytes and holds 900");
  EXPECT_EQ(step_.in_use(), 0);
  other.Return(900);
  other.Unref();
}

TEST_F(MemoryAccountTest, WhatIsNotRefusedStillCounts) {
  task_.ChargeAlways(2000);
  EXPECT_EQ(session_.available(), 0);
  EXPECT_FALSE(session_.Charge(1));
  task_.Return(2000);
}

// Tests the allocator of builds without sanitizers.
class ChargedAllocatorTest : public ::testing::Test {
 protected:
  ChargedAllocatorTest() { TakeRefusal(); }
  ~ChargedAllocatorTest() override { account_.Unref(); }

  CachingAllocator& allocator_ = CachingAllocator::Get();
  MemoryAccount& account_ = *MemoryAccount::New("session 7", 4 << 20, MemoryAccount::Task());
};

TEST_F(ChargedAllocatorTest, LargeBlocksAreChargedUntilTheyAreFreed) {
  void* block;
  {
    const ChargedAccount charged(&account_);
    block = allocator_.Allocate(1 << 20);
  }
  EXPECT_EQ(account_.in_use(), 1 << 20);
  void* const other = allocator_.Allocate(1 << 20);
  EXPECT_EQ(account_.in_use(), 1 << 20);
  allocator_.Deallocate(block, 1 << 20);
  EXPECT_EQ(account_.in_use(), 0);
  allocator_.Deallocate(other, 1 << 20);
}

TEST_F(ChargedAllocatorTest, ATensorThatExceedsTheLimitIsAnErrorThatSaysWhatAndWhose) {
  const ChargedAccount charged(&account_);
  const Tensor half = *Tensor::Make(allocator_, DType::kFloat, {512, 1024});
  const StatusOr<Tensor> more = Tensor::Make(allocator_, DType::kFloat, {1024, 1024});
  EXPECT_EQ(more.status(),
            ResourceExhausted("no memory for a tensor float[1024,1024] of 4194304 bytes on CPU "
                              "memory: session 7 may hold 4194304 bytes and holds 2097152"));
  EXPECT_EQ(account_.in_use(), 2 << 20);
}

TEST_F(ChargedAllocatorTest, SmallBlocksAreTheTasks) {
  const ChargedAccount charged(&account_);
  const int64_t before = MemoryAccount::Task().in_use();
  // Tensors of a size that no earlier test has left in the cache.
  std::vector<Tensor> small;
  for (int i = 0; i < 1000; ++i) small.emplace_back(DType::kFloat, Shape({3000}));
  EXPECT_EQ(account_.in_use(), 0);
  EXPECT_GE(MemoryAccount::Task().in_use() - before, 1000 * 12'000 - (512 << 10));
}

// A block outlives its step, and keeps the account alive.
TEST_F(ChargedAllocatorTest, ABlockKeepsItsAccount) {
  MemoryAccount* const step = MemoryAccount::New("step 8", 0, account_);
  void* block;
  {
    const ChargedAccount charged(step);
    block = allocator_.Allocate(1 << 20);
  }
  step->Unref();
  EXPECT_EQ(account_.in_use(), 1 << 20);
  allocator_.Deallocate(block, 1 << 20);
  EXPECT_EQ(account_.in_use(), 0);
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/loop/loop.h"

#include <sys/eventfd.h>

#include <set>
#include <thread>

#include "core/base/check.h"
#include "core/base/testing/eventually.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// An end whose peer is the test: Give adds work, and wakes the end if its sleep flag is raised.
class TestEnd final : public TransportLoop::End {
 public:
  void Give() {
    ++given_;
    if (asleep_.exchange(false)) eventfd_write(fd_.get(), 1);
  }
  int taken() const { return taken_; }
  bool asleep() const { return asleep_; }
  bool closed() const { return closed_; }
  std::set<std::thread::id> threads() {
    MutexLock lock(mu_);
    return threads_;
  }

  int fd() const override { return fd_.get(); }
  bool Advance() override {
    if (taken_ == given_) return false;
    taken_ = given_.load();
    MutexLock lock(mu_);
    threads_.insert(std::this_thread::get_id());
    return true;
  }
  bool HasMore() override { return taken_ != given_; }
  void AskForWakeUps() override { asleep_ = true; }
  void StopWakeUps() override { asleep_ = false; }
  bool Receive() override {
    eventfd_t ignored = 0;
    return eventfd_read(fd_.get(), &ignored) == 0;
  }
  bool Tick(int64_t) override { return true; }
  void Close() override { closed_ = true; }

 private:
  const UniqueFd fd_{eventfd(0, EFD_CLOEXEC)};
  std::atomic<int> given_ = 0, taken_ = 0;
  std::atomic<bool> asleep_ = false, closed_ = false;
  Mutex mu_;
  std::set<std::thread::id> threads_ ABSL_GUARDED_BY(mu_);
};

class LoopTest : public testing::Test {
 protected:
  LoopTest() {
    CHECK_OK(loop_.Start());
    CHECK(loop_.Add(end_));
  }
  // Calls the loop's BeginPolling as soon as the loop's thread sleeps.
  void BeginPolling() {
    ASSERT_TRUE(Eventually([&] { return end_->asleep(); }));
    ASSERT_TRUE(Eventually([&] { return loop_.BeginPolling(); }));
  }

  const std::shared_ptr<TestEnd> end_ = std::make_shared<TestEnd>();
  TransportLoop loop_{Env::Real(), "test"};
};

TEST_F(LoopTest, ItsThreadTakesWhatComesWhileItSleeps) {
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(Eventually([&] { return end_->asleep(); }));
    end_->Give();
    EXPECT_TRUE(Eventually([&] { return end_->taken() == i; }));
  }
  EXPECT_FALSE(end_->threads().contains(std::this_thread::get_id()));
}

TEST_F(LoopTest, AnotherThreadPollsInItsPlace) {
  BeginPolling();
  EXPECT_FALSE(end_->asleep()) << "a peer need not wake anybody";
  EXPECT_FALSE(loop_.BeginPolling()) << "one at a time";
  end_->Give();
  loop_.PollOnce();
  EXPECT_EQ(end_->taken(), 1);
  EXPECT_EQ(end_->threads(), std::set{std::this_thread::get_id()});
  loop_.EndPolling();
  end_->Give();
  EXPECT_TRUE(Eventually([&] { return end_->taken() == 2; }));
  EXPECT_EQ(end_->threads().size(), 2);
}

TEST_F(LoopTest, WorkBeforeEndPollingIsNotLost) {
  for (int i = 1; i <= 100; ++i) {
    BeginPolling();
    end_->Give();  // no thread polls this end any more
    loop_.EndPolling();
    ASSERT_TRUE(Eventually([&] { return end_->taken() == i; }));
  }
}

TEST_F(LoopTest, StopWaitsForTheThreadThatPolls) {
  BeginPolling();
  std::thread stops([&] { loop_.Stop(); });
  // The loop takes no more ends once it is being stopped.
  ASSERT_TRUE(Eventually([&] { return !loop_.Add(std::make_shared<TestEnd>()); }));
  EXPECT_FALSE(end_->closed());
  loop_.PollOnce();
  loop_.EndPolling();
  stops.join();
  EXPECT_TRUE(end_->closed());
}

}  // namespace
}  // namespace penstock

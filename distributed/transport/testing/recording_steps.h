// SPDX-License-Identifier: Apache-2.0
//
// RecordingSteps: for tests, the steps of a task that only record what a transport brings them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "distributed/transport/transport.h"

namespace penstock {

class RecordingSteps final : public TaskSteps {
 public:
  struct Received {
    int64_t step_id;
    HashedKey key;
    Tensor value;
    bool is_dead;
  };

  void set_memory(Allocator& memory) { memory_ = &memory; }
  int allocators_asked() const { return asked_; }

  // From now on Deliver waits for Unblock.
  void Block() {
    std::lock_guard<std::mutex> lock(mu_);
    blocked_ = true;
  }
  void Unblock() {
    std::lock_guard<std::mutex> lock(mu_);
    blocked_ = false;
    changed_.notify_all();
  }
  // Waits until a call of Deliver waits.
  void WaitUntilStuck() {
    Wait("a tensor that waits", [this] { return stuck_; });
  }

  // Waits for the subscription of `consumer`; returns the way there.
  std::shared_ptr<TensorSink> WaitForSink(const std::string& consumer, int64_t step_id) {
    const auto key = std::make_pair(consumer, step_id);
    Wait("a subscription", [&] { return sinks_.contains(key); });
    std::lock_guard<std::mutex> lock(mu_);
    return sinks_.at(key);
  }
  // Waits for so many tensors; returns all that are here.
  std::vector<Received> WaitForTensors(size_t count) {
    Wait("tensors", [&] { return received_.size() >= count; });
    return received();
  }
  std::vector<Received> received() {
    std::lock_guard<std::mutex> lock(mu_);
    return received_;
  }
  void ForgetTensors() {
    std::lock_guard<std::mutex> lock(mu_);
    received_.clear();
  }
  Status WaitForFailure(int64_t step_id) {
    Wait("a failure", [&] { return failures_.contains(step_id); });
    std::lock_guard<std::mutex> lock(mu_);
    return failures_.at(step_id);
  }
  bool has_failed(int64_t step_id) {
    std::lock_guard<std::mutex> lock(mu_);
    return failures_.contains(step_id);
  }

  // TaskSteps.
  void Subscribe(const std::string& consumer, int64_t step_id,
                 std::shared_ptr<TensorSink> sink) override {
    std::lock_guard<std::mutex> lock(mu_);
    sinks_[{consumer, step_id}] = std::move(sink);
    changed_.notify_all();
  }
  Allocator& AllocatorFor(int64_t, const HashedKey&, DType, const Shape&) override {
    ++asked_;
    return *memory_;
  }
  void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) override {
    std::unique_lock<std::mutex> lock(mu_);
    stuck_ = blocked_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !blocked_; });
    received_.push_back({step_id, key, std::move(value), is_dead});
    changed_.notify_all();
  }
  void Fail(int64_t step_id, const Status& why) override {
    std::lock_guard<std::mutex> lock(mu_);
    failures_.emplace(step_id, why);
    changed_.notify_all();
  }

 private:
  template <class Condition>
  void Wait(const char* what, Condition condition) {
    std::unique_lock<std::mutex> lock(mu_);
    CHECK(changed_.wait_for(lock, std::chrono::seconds(60), condition), "waited in vain for ",
          what);
  }

  std::atomic<Allocator*> memory_ = &CpuAllocator();
  std::atomic<int> asked_ = 0;
  std::mutex mu_;
  std::condition_variable changed_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<TensorSink>> sinks_;
  std::vector<Received> received_;
  std::map<int64_t, Status> failures_;  // the first of each step
  bool blocked_ = false;
  bool stuck_ = false;
};

}  // namespace penstock

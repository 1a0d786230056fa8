// SPDX-License-Identifier: Apache-2.0
//
// RecordingSteps: for tests, a TaskSteps that only records the calls of a transport.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
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

  // Makes Deliver block from now on, until Unblock is called.
  void Block() {
    MutexLock lock(mu_);
    blocked_ = true;
  }
  void Unblock() {
    MutexLock lock(mu_);
    blocked_ = false;
    changed_.NotifyAll();
  }
  // Waits until a call of Deliver blocks.
  void WaitUntilStuck() {
    Wait("a tensor that waits", [this] { return stuck_; });
  }

  // Waits for the subscription of `consumer`; returns the sink that leads to it.
  std::shared_ptr<TensorSink> WaitForSink(const std::string& consumer, int64_t step_id) {
    const auto key = std::make_pair(consumer, step_id);
    Wait("a subscription", [&] { return sinks_.contains(key); });
    MutexLock lock(mu_);
    return sinks_.at(key);
  }
  // Waits for `count` tensors; returns all that have arrived.
  std::vector<Received> WaitForTensors(size_t count) {
    Wait("tensors", [&] { return received_.size() >= count; });
    return received();
  }
  std::vector<Received> received() {
    MutexLock lock(mu_);
    return received_;
  }
  void ForgetTensors() {
    MutexLock lock(mu_);
    received_.clear();
  }
  void ForgetSinks() {
    MutexLock lock(mu_);
    sinks_.clear();
  }
  Status WaitForFailure(int64_t step_id) {
    Wait("a failure", [&] { return failures_.contains(step_id); });
    MutexLock lock(mu_);
    return failures_.at(step_id);
  }
  bool has_failed(int64_t step_id) {
    MutexLock lock(mu_);
    return failures_.contains(step_id);
  }

  // Implements TaskSteps:
  void Subscribe(const std::string& consumer, int64_t step_id,
                 std::shared_ptr<TensorSink> sink) override {
    MutexLock lock(mu_);
    sinks_[{consumer, step_id}] = std::move(sink);
    changed_.NotifyAll();
  }
  Allocator& AllocatorFor(int64_t, const HashedKey&, DType, const Shape&) override {
    ++asked_;
    return *memory_;
  }
  void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) override {
    MutexLock lock(mu_);
    stuck_ = blocked_;
    changed_.NotifyAll();
    while (blocked_) changed_.Wait(mu_);
    received_.push_back({step_id, key, std::move(value), is_dead});
    changed_.NotifyAll();
  }
  void Fail(int64_t step_id, const Status& why) override {
    MutexLock lock(mu_);
    failures_.emplace(step_id, why);
    changed_.NotifyAll();
  }

 private:
  template <class Condition>
  void Wait(const char* what, Condition condition) {
    MutexLock lock(mu_);
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) CHECK(changed_.WaitUntil(mu_, latest), "waited in vain for ", what);
  }

  std::atomic<Allocator*> memory_ = &CpuAllocator();
  std::atomic<int> asked_ = 0;
  Mutex mu_;
  CondVar changed_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<TensorSink>> sinks_;
  std::vector<Received> received_;
  std::map<int64_t, Status> failures_;  // the first error of each step
  bool blocked_ = false;
  bool stuck_ = false;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/completion_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/status.h"

namespace penstock {

CompletionLoop::CompletionLoop(std::unique_ptr<grpc::CompletionQueue> queue, int threads)
    : queue_(std::move(queue)) {
  for (int i = 0; i < threads; ++i) {
    threads_.push_back(Scheduler::Real().StartThread(StrCat("calls/", i), [this] { Poll(); }));
  }
}

CompletionLoop::~CompletionLoop() { CHECK(threads_.empty(), "destroyed without Stop"); }

void CompletionLoop::Poll() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    PENSTOCK_TSAN_ACQUIRE(tag);
    static_cast<Event*>(tag)->Proceed(ok);
  }
}

bool CompletionLoop::Begin(Operation* operation) {
  MutexLock lock(mu_);
  if (stopping_) return false;
  operation->number_ = ++begun_;
  operations_.insert(operation);
  return true;
}

void CompletionLoop::End(Operation* operation) {
  MutexLock lock(mu_);
  while (being_cancelled_ == operation) changed_.Wait(mu_);
  operations_.erase(operation);
  if (stopping_ && operations_.empty()) changed_.NotifyAll();
}

void CompletionLoop::CancelAll() {
  std::vector<std::pair<int64_t, Operation*>> left;
  MutexLock lock(mu_);
  stopping_ = true;
  for (Operation* operation : operations_) left.emplace_back(operation->number_, operation);
  std::sort(left.begin(), left.end());
  for (const auto& [number, operation] : left) {
    // Skips operations that have ended. Their addresses are not reused, because no operation
    // begins any more.
    if (!operations_.contains(operation)) continue;
    being_cancelled_ = operation;
    lock.Unlock();
    operation->Cancel();
    lock.Lock();
    being_cancelled_ = nullptr;
    changed_.NotifyAll();
  }
  while (!operations_.empty()) changed_.Wait(mu_);
}

void CompletionLoop::Stop() {
  CancelAll();
  queue_->Shutdown();
  threads_.clear();  // waits until the threads have ended
}

}  // namespace penstock

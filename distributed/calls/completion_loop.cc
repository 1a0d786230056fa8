// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/completion_loop.h"

#include <utility>

#include "core/base/check.h"

namespace penstock {

CompletionLoop::CompletionLoop(std::unique_ptr<grpc::CompletionQueue> queue, int threads)
    : queue_(std::move(queue)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Poll(); });
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
  operations_.insert(operation);
  return true;
}

void CompletionLoop::End(Operation* operation) {
  MutexLock lock(mu_);
  operations_.erase(operation);
  if (stopping_ && operations_.empty()) none_left_.NotifyAll();
}

void CompletionLoop::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    for (Operation* operation : operations_) operation->Cancel();
    while (!operations_.empty()) none_left_.Wait(mu_);
  }
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace penstock

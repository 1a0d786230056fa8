// SPDX-License-Identifier: Apache-2.0
//
// CompletionLoop: the threads that poll gRPC's completion queue and call the handlers of finished
// operations. They never block, so a few threads serve any number of waiting calls.
//
//   Event      the tag of one gRPC operation; Proceed is called when it has ended.
//   Operation  a running call, outgoing or incoming; Stop cancels the remaining ones and waits.
#pragma once

#include <grpcpp/completion_queue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

#if defined(PENSTOCK_TSAN)
// These functions tell the thread sanitizer that code before an operation's start happens before
// its end, because gRPC itself is not instrumented.
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#define PENSTOCK_TSAN_ACQUIRE(address) __tsan_acquire(address)
#define PENSTOCK_TSAN_RELEASE(address) __tsan_release(address)
#else
#define PENSTOCK_TSAN_ACQUIRE(address) (void)(address)
#define PENSTOCK_TSAN_RELEASE(address) (void)(address)
#endif

namespace penstock {

class Event {
 public:
  virtual ~Event() = default;
  // Called when the operation has ended. `ok`: as returned by CompletionQueue::Next.
  virtual void Proceed(bool ok) = 0;
  // Returns the tag to start the operation with.
  void* tag() {
    PENSTOCK_TSAN_RELEASE(this);
    return this;
  }
};

// The Event of an object that shared pointers hold. It calls the object's method `then` when the
// operation has ended, and keeps the object alive until then.
template <class T>
class EventOf final : public Event {
 public:
  explicit EventOf(void (T::*then)(bool ok)) : then_(then) {}
  void* TagFor(std::shared_ptr<T> self) {
    self_ = std::move(self);
    return tag();
  }
  // Releases the object if the operation was never started.
  void Forget() { self_ = nullptr; }
  void Proceed(bool ok) override {
    const std::shared_ptr<T> self = std::move(self_);
    ((*self).*then_)(ok);
  }

 private:
  void (T::*const then_)(bool ok);
  std::shared_ptr<T> self_;
};

class Operation {
 public:
  virtual ~Operation() = default;
  // Makes the operation end soon. Thread-safe. The loop calls it without its lock, and not after
  // CompletionLoop::End(this); the operation may already have ended by itself. Must not call End.
  virtual void Cancel() = 0;

 private:
  friend class CompletionLoop;
  int64_t number_ = 0;  // set by Begin; grows from operation to operation
};

class CompletionLoop {
 public:
  CompletionLoop(std::unique_ptr<grpc::CompletionQueue> queue, int threads);
  ~CompletionLoop();  // REQUIRES: Stop was called
  grpc::CompletionQueue& queue() { return *queue_; }

  // Registers an operation. Returns false if the loop is being stopped; the caller must then not
  // start the operation.
  [[nodiscard]] bool Begin(Operation* operation);
  // Removes the operation. If the loop is calling its Cancel, waits until that call returns.
  void End(Operation* operation);

  // Cancels the remaining operations in the order in which they began, waits until all have
  // ended, and ends the threads. REQUIRES: the handlers of incoming calls will finish their calls.
  void Stop();

 private:
  void Poll();
  void CancelAll();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Mutex mu_;
  CondVar changed_;
  absl::flat_hash_set<Operation*> operations_ ABSL_GUARDED_BY(mu_);
  Operation* being_cancelled_ ABSL_GUARDED_BY(mu_) = nullptr;
  int64_t begun_ ABSL_GUARDED_BY(mu_) = 0;  // number of operations begun so far
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock

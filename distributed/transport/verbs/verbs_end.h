// SPDX-License-Identifier: Apache-2.0
//
// VerbsEnd: what both ends of a connection have in common: a queue pair that the loop serves.
#pragma once

#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "distributed/transport/loop/loop.h"
#include "distributed/transport/verbs/queue_pair.h"

namespace penstock {

class VerbsEnd : public TransportLoop::End {
 public:
  int fd() const override { return fd_; }
  bool HasMore() override {
    MutexLock lock(mu_);
    return pair_ != nullptr && pair_->HasEvents();
  }
  void FallAsleep() override {
    MutexLock lock(mu_);
    if (pair_ != nullptr) pair_->Arm();
  }
  void WakeUp() override {}
  bool Receive() override {
    MutexLock lock(mu_);
    if (pair_ != nullptr) pair_->TakeEvents();
    return pair_ != nullptr;
  }

 protected:
  explicit VerbsEnd(std::unique_ptr<QueuePair> pair) : fd_(pair->fd()), pair_(std::move(pair)) {}

  const int fd_;
  Mutex mu_;
  std::unique_ptr<QueuePair> pair_ ABSL_GUARDED_BY(mu_);  // null: the connection has ended
};

}  // namespace penstock

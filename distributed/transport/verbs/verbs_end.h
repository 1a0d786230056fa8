// SPDX-License-Identifier: Apache-2.0
//
// VerbsEnd: the base of VerbsSink and VerbsStream: an end of a connection, whose queue pair
// the loop serves.
#pragma once

#include <cstdint>
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
    return pair_ != nullptr && (polled_ || pair_->HasEvents());
  }
  void AskForWakeUps() override {
    MutexLock lock(mu_);
    if (pair_ != nullptr) pair_->Arm();
  }
  void StopWakeUps() override {}
  bool Receive() override {
    MutexLock lock(mu_);
    if (pair_ != nullptr) pair_->TakeEvents();
    return pair_ != nullptr;
  }
  // Keeps the connection alive while the loop's thread is busy: delivering a tensor to a step may
  // run the step's kernels on that thread for a long time. The caller calls this once a second, on
  // any thread.
  void KeepAlive(int64_t now_ns) {
    MutexLock lock(mu_);
    if (pair_ == nullptr || !broken_.ok() || now_ns - ticked_ns_ < kBusyNanosMin) return;
    if (ticked_ns_ == 0 || !pair_->has_heard()) return;  // not yet added to a loop
    PollPair(now_ns);
    if (broken_.ok()) broken_ = pair_->Ping(now_ns);
    polled_ = true;
  }

 protected:
  static constexpr int64_t kBusyNanosMin = 1'500'000'000;

  void PollPair(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const StatusOr<int> ended = pair_->Poll(now_ns);
    if (ended.ok()) {
      ended_reads_ += *ended;
    } else if (broken_.ok()) {
      broken_ = ended.status();
    }
  }
  // Polls the queue pair. Returns whether there is work for the loop.
  bool TakeWork(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const bool worked = std::exchange(polled_, false) || pair_->HasEvents() || !broken_.ok();
    if (worked && broken_.ok()) PollPair(now_ns);
    return worked;
  }

  explicit VerbsEnd(std::unique_ptr<QueuePair> pair) : fd_(pair->fd()), pair_(std::move(pair)) {}

  const int fd_;
  Mutex mu_;
  std::unique_ptr<QueuePair> pair_ ABSL_GUARDED_BY(mu_);  // null: the connection has ended
  Status broken_ ABSL_GUARDED_BY(mu_);  // the error for which the loop has to end the connection
  int64_t ticked_ns_ ABSL_GUARDED_BY(mu_) = 0;  // when the loop last called Tick
  // The number of reads that have ended and are not yet processed by the loop.
  int ended_reads_ ABSL_GUARDED_BY(mu_) = 0;
  // True if KeepAlive has polled since the loop polled last.
  bool polled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock

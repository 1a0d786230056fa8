// SPDX-License-Identifier: Apache-2.0
//
// Outstanding: counts the operations that an algorithm still waits for, and calls its Done
// when none is left.
//
// Thread-safe. Starts with a count of one, for the function that begins the operations.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include "core/base/done.h"
#include "core/base/mutex.h"

namespace penstock::collective {

class Outstanding {
 public:
  explicit Outstanding(Done done) : done_(std::move(done)) {}

  void Add(int count) { left_.fetch_add(count, std::memory_order_relaxed); }
  // Ends one operation. The last call calls the Done, with the first error of all operations.
  void End(const Status& status) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!status.ok()) {
      failed_.store(true, std::memory_order_release);
      MutexLock lock(mu_);
      if (first_.ok()) first_ = status;
    }
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    Status first;
    {
      MutexLock lock(mu_);
      first = first_;
    }
    Done done = *std::move(done_);
    std::move(done)(std::move(first));
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  std::atomic<int> left_{1};
  std::atomic<bool> failed_{false};
  Mutex mu_;
  Status first_ ABSL_GUARDED_BY(mu_);
  std::optional<Done> done_;  // moved out by the last End
};

}  // namespace penstock::collective

// SPDX-License-Identifier: Apache-2.0
//
// ShardMutex: the lock of one shard of a table. It allows many readers, or one writer.
//
// A shard that keeps rows in files reads and writes them under its lock. Threads that need the lock
// then wait through the Scheduler of their caller. So a simulation in which files take time can run
// the holder of the lock while they wait. A shard without files has an ordinary SharedMutex. In
// both cases a reader waits only for the writer that holds the lock.
#pragma once

#include <vector>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock {

class ABSL_LOCKABLE ShardMutex {
 public:
  // `waits_for_files`: whether a holder of the lock may read or write a file.
  explicit ShardMutex(bool waits_for_files) : waits_for_files_(waits_for_files) {}
  ShardMutex(const ShardMutex&) = delete;
  ShardMutex& operator=(const ShardMutex&) = delete;

  void Lock(Scheduler& threads) ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    waits_for_files_ ? Acquire(threads, /*alone=*/true) : mu_.Lock();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    waits_for_files_ ? Release() : mu_.Unlock();
  }
  void ReaderLock(Scheduler& threads) ABSL_SHARED_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    waits_for_files_ ? Acquire(threads, /*alone=*/false) : mu_.ReaderLock();
  }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    waits_for_files_ ? Release() : mu_.ReaderUnlock();
  }

 private:
  void Acquire(Scheduler& threads, bool alone) ABSL_LOCKS_EXCLUDED(state_mu_);
  void Release() ABSL_LOCKS_EXCLUDED(state_mu_);

  const bool waits_for_files_;
  SharedMutex mu_;  // used if waits_for_files_ is false; otherwise, the members below are used

  Mutex state_mu_;
  int readers_ ABSL_GUARDED_BY(state_mu_) = 0;
  bool writer_ ABSL_GUARDED_BY(state_mu_) = false;
  // One Condition for each waiting thread, because threads may wait through different schedulers.
  std::vector<Condition*> waits_ ABSL_GUARDED_BY(state_mu_);
};

class ABSL_SCOPED_LOCKABLE ShardReaderLock {
 public:
  ShardReaderLock(ShardMutex& mu, Scheduler& threads) ABSL_SHARED_LOCK_FUNCTION(mu) : mu_(mu) {
    mu_.ReaderLock(threads);
  }
  ~ShardReaderLock() ABSL_UNLOCK_FUNCTION() { mu_.ReaderUnlock(); }
  ShardReaderLock(const ShardReaderLock&) = delete;
  ShardReaderLock& operator=(const ShardReaderLock&) = delete;

 private:
  ShardMutex& mu_;
};

}  // namespace penstock

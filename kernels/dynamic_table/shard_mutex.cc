// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/shard_mutex.h"

#include <vector>

namespace penstock {

void ShardMutex::Acquire(Scheduler& threads, bool alone) {
  MutexLock lock(state_mu_);
  const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mu_) {
    return !writer_ && (!alone || readers_ == 0);
  };
  if (!free()) {
    Condition released(threads, "the lock of a table's shard");
    waits_.push_back(&released);
    released.Wait(state_mu_, free);
    std::erase(waits_, &released);
  }
  if (alone) {
    writer_ = true;
  } else {
    ++readers_;
  }
}

void ShardMutex::Release() {
  MutexLock lock(state_mu_);
  if (writer_) {
    writer_ = false;
  } else {
    --readers_;
  }
  if (readers_ > 0) return;
  for (Condition* const released : waits_) released->NotifyAll();
}

}  // namespace penstock

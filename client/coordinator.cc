// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator.h"

#include <utility>

#include "core/base/error_origin.h"

namespace penstock::client {

Coordinator::~Coordinator() {
  RequestStop();
  (void)Join();
}

void Coordinator::Start(std::function<Status()> body) {
  MutexLock lock(mu_);
  threads_.push_back(scheduler_.StartThread("coordinated", [this, body = std::move(body)] {
    const Status status = body();
    if (!status.ok()) RequestStop(status);
  }));
}

void Coordinator::RequestStop(const Status& why) {
  {
    MutexLock lock(mu_);
    if (std::exchange(stopping_, true)) return;
    if (!absl::IsOutOfRange(why)) first_error_ = why;
  }
  cancellation_.Cancel(
      WithOriginOf(why, Cancelled("a stop was requested", why.ok() ? "" : ": ", why.message())));
}

Status Coordinator::Join() {
  for (;;) {
    // the destructor of `threads` waits until the threads have ended
    std::vector<std::unique_ptr<Thread>> threads;
    {
      MutexLock lock(mu_);
      threads.swap(threads_);
      if (threads.empty()) return first_error_;
    }
  }
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
#include "client/allreduce/member_watch.h"

#include <algorithm>

#include "client/seconds.h"

namespace penstock::client {
namespace {

// The interval at which the watch looks at the wait.
constexpr double kWatchSeconds = 1;

}  // namespace

void MemberWatch::Start(int next, std::function<void()> leave) {
  Stop();
  watching_ = std::make_unique<Periodic>(
      "watch a member", std::min(kWatchSeconds, options_.patience_seconds),
      [this, next, leave = std::move(leave)] { Watch(next, leave); }, *options_.env,
      *options_.scheduler);
}

void MemberWatch::Stop() {
  watching_ = nullptr;
  EndWait();
  gone_ = -1;
}

void MemberWatch::Watch(int next, const std::function<void()>& leave) {
  // If the task does not answer, the transport ends the wait.
  if (gone_ < 0 && WaitsTooLong() && options_.client_is_gone(next)) gone_ = next;
  if (gone_ >= 0 && waits_since_ns_ != 0) leave();
}

bool MemberWatch::WaitsTooLong() const {
  const int64_t since_ns = waits_since_ns_;
  return since_ns != 0 && options_.env->NowNanos() - since_ns >= Nanos(options_.patience_seconds);
}

}  // namespace penstock::client

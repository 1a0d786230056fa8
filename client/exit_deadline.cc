// SPDX-License-Identifier: Apache-2.0
#include "client/exit_deadline.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/blocking_calls.h"
#include "core/base/log.h"

namespace penstock::client {

ExitDeadline::ExitDeadline(double seconds, std::function<std::string()> describe, Env& env,
                           Scheduler& scheduler)
    : describe_(std::move(describe)),
      env_(env),
      ended_(scheduler, "the process to end in time"),
      watcher_(scheduler.StartThread("exit deadline", [this, seconds] { Watch(seconds); })) {}

ExitDeadline::~ExitDeadline() {
  {
    MutexLock lock(mu_);
    ended_in_time_ = true;
    ended_.NotifyAll();
  }
  watcher_ = nullptr;
}

void ExitDeadline::Watch(double seconds) {
  {
    MutexLock lock(mu_);
    const int64_t latest_ns = env_.NowNanos() + static_cast<int64_t>(seconds * 1e9);
    const auto in_time = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ended_in_time_; };
    if (ended_.WaitUntil(mu_, latest_ns, in_time)) return;
  }
  std::string running = describe_ ? describe_() : "";
  if (running.empty()) running = absl::StrJoin(BlockingCall::List(env_), "; ");
  Log({.level = LogLevel::kError,
       .event = "exit_forced",
       .text = StrCat("the process was told to end and did not within ", seconds, " s",
                      running.empty() ? "" : ", because of: ", running, "; it exits now")});
  _exit(kExitCode);
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
#include "client/stop_signal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/check.h"

namespace penstock::client {
namespace {

// The pipe that the handler writes to; -1: no StopSignal exists.
std::atomic<int> signal_pipe{-1};

void OnSignal(int) {
  const int saved_errno = errno;
  const char byte = 1;
  // The pipe can be full only if signals are pending already, so an error is ignored.
  [[maybe_unused]] const ssize_t written = write(signal_pipe.load(), &byte, 1);
  errno = saved_errno;
}

}  // namespace

StopSignal::StopSignal(double grace_seconds, Env& env, Scheduler& scheduler)
    : env_(env), ended_(scheduler, "the end of what a signal told to end") {
  CHECK(pipe2(pipe_, O_CLOEXEC) == 0, "pipe2: errno ", errno);
  CHECK(fcntl(pipe_[1], F_SETFL, O_NONBLOCK) == 0, "fcntl: errno ", errno);
  CHECK(signal_pipe.exchange(pipe_[1]) == -1, "there is a StopSignal already");
  watcher_ = scheduler.StartThread("signals", [this, grace_seconds] { Watch(grace_seconds); });
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  sigaction(SIGTERM, &action, &old_term_);
  sigaction(SIGINT, &action, &old_int_);
}

StopSignal::~StopSignal() {
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGINT, &old_int_, nullptr);
  signal_pipe.store(-1);
  {
    MutexLock lock(mu_);
    end_ = true;
    ended_.NotifyAll();
  }
  close(pipe_[1]);  // the watcher then reads the end of the file
  watcher_ = nullptr;
  close(pipe_[0]);
}

void StopSignal::Watch(double grace_seconds) {
  char byte;
  ssize_t count;
  do {
    count = read(pipe_[0], &byte, 1);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return;
  requested_.store(true, std::memory_order_release);
  {
    MutexLock lock(mu_);
    const int64_t latest_ns = env_.NowNanos() + static_cast<int64_t>(grace_seconds * 1e9);
    const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return end_; };
    if (ended_.WaitUntil(mu_, latest_ns, ended)) return;
  }
  cancellation_.Cancel(Cancelled("the process was told to end, and the step did not end within ",
                                 grace_seconds, " s"));
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
#include "client/stop_signal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "core/base/check.h"

namespace penstock::client {
namespace {

// Where the handler writes; -1: nobody listens.
std::atomic<int> signal_pipe{-1};

void OnSignal(int) {
  const int saved_errno = errno;
  const char byte = 1;
  // The pipe is full only if a signal is waiting already.
  [[maybe_unused]] const ssize_t written = write(signal_pipe.load(), &byte, 1);
  errno = saved_errno;
}

}  // namespace

StopSignal::StopSignal(double grace_seconds) {
  CHECK(pipe2(pipe_, O_CLOEXEC) == 0, "pipe2: errno ", errno);
  CHECK(fcntl(pipe_[1], F_SETFL, O_NONBLOCK) == 0, "fcntl: errno ", errno);
  CHECK(signal_pipe.exchange(pipe_[1]) == -1, "there is a StopSignal already");
  watcher_ = std::thread([this, grace_seconds] { Watch(grace_seconds); });
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
  }
  ended_.NotifyOne();
  close(pipe_[1]);  // the watcher reads the end of file
  watcher_.join();
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
  MutexLock lock(mu_);
  const auto grace = std::chrono::duration<double>(grace_seconds);
  const auto deadline = std::chrono::steady_clock::now() + grace;
  while (!end_ && ended_.WaitUntil(mu_, deadline)) {
  }
  if (end_) return;
  lock.Unlock();
  cancellation_.Cancel(Cancelled("the process was told to end, and the step did not end within ",
                                 grace_seconds, " s"));
}

}  // namespace penstock::client

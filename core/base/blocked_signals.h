// SPDX-License-Identifier: Apache-2.0
//
// BlockedSignals: while it lives, no signal handler runs on this thread, unless the thread itself
// is the signal's cause (SIGSEGV and its kin, SIGABRT). A signal that comes to the process
// meanwhile goes to another thread, or waits.
//
// For calls of foreign code that keeps its data where a handler's frame would be. Two system calls,
// 0.3 us together. Nests; must be destroyed on its thread.
#pragma once

#include <signal.h>

namespace penstock {

class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace penstock

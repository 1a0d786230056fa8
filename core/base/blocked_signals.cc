// SPDX-License-Identifier: Apache-2.0
#include "core/base/blocked_signals.h"

#include <initializer_list>

namespace penstock {
namespace {

sigset_t SignalsFromOutside() {
  sigset_t signals;
  sigfillset(&signals);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&signals, fault);
  }
  return signals;
}

}  // namespace

BlockedSignals::BlockedSignals() {
  static const sigset_t signals = SignalsFromOutside();
  pthread_sigmask(SIG_BLOCK, &signals, &previous_mask_);
}

}  // namespace penstock

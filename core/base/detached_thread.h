// SPDX-License-Identifier: Apache-2.0
//
// Starts a thread for a call of the operating system that cannot be cancelled, such as
// getaddrinfo, or a read of standard input. The caller need not wait for the thread to end. Every
// other thread of Penstock belongs to a Scheduler, and its owner waits for its end.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"

namespace penstock {

// Runs `body` on a new thread; `body` must own all objects that it uses. Debuggers show `name`, cut
// to 15 characters. ResourceExhausted if the system cannot start another thread.
Status StartDetachedThread(const std::string& name, absl::AnyInvocable<void() &&> body);

}  // namespace penstock

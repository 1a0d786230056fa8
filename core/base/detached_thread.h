// SPDX-License-Identifier: Apache-2.0
//
// Starts a thread for a call of the operating system that cannot be cancelled, such as
// getaddrinfo, or a read of standard input. The caller need not wait for its end. Every other
// thread is one of a Scheduler, which can be awaited.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"

namespace penstock {

// Runs `body`, which must own all that it uses, on a new thread. `name` shows in debuggers; the
// system keeps 15 characters. ResourceExhausted if the system has no thread.
Status StartDetachedThread(const std::string& name, absl::AnyInvocable<void() &&> body);

}  // namespace penstock

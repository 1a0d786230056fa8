// SPDX-License-Identifier: Apache-2.0
//
// The memory of simulated tasks. Each has an account of its own with a fixed limit, so that a run
// depends neither on the machine's memory nor on what other tasks of the simulation hold.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/tensor/memory_account.h"

namespace penstock {

inline constexpr int64_t kSimTaskBytes = int64_t{4} << 30;

// Returns the account for Task::Parts::account. `bytes`: the task's limit.
inline MemoryAccountPtr NewSimMemory(const std::string& task, int64_t bytes = kSimTaskBytes) {
  return MemoryAccountPtr(MemoryAccount::New(task, bytes, MemoryAccount::Task()));
}

}  // namespace penstock

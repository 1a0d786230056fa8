// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process may use: the amount that the machine and the control groups allow,
// and the part of it that tensors may use by default. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

// Returns how many bytes of memory this process may use: the minimum of the machine's memory, the
// limits of its control groups (cgroup versions 1 and 2, each group and its ancestors) and `ulimit
// -v` and `-d`. Reads the system's files at each call. `root` is the folder that contains /proc and
// /sys: "" except in tests.
int64_t AvailableMemoryBytes(const std::string& root = "");

// Returns how many bytes tensors may use by default: AvailableMemoryBytes() less a reserve for the
// program itself (code, messages, graphs). The reserve is an eighth, at least 64 MiB and at most 2
// GiB, but never more than half.
int64_t DefaultMemoryLimit();
int64_t DefaultMemoryLimitOf(int64_t available_bytes);

}  // namespace penstock

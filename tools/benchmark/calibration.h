// SPDX-License-Identifier: Apache-2.0
//
// Measures the current speed of the machine, for the head of a report. On a shared machine, numbers
// of different reports can be compared only if the reports state this speed.
#pragma once

#include <string>

#include "tools/benchmark/rounds.h"

namespace penstock::benchmark {

// Prepares the measurement `what`. "memcpy": GB/s of copying 64 MB with one thread. "fma": GFLOP/s
// of one thread with 256-bit registers, the upper bound for every AVX2 kernel.
StatusOr<Round> PrepareCalibration(const std::string& what);

}  // namespace penstock::benchmark

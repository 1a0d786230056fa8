// SPDX-License-Identifier: Apache-2.0
//
// Measures the current speed of the machine, for the head of a report. Without it, numbers measured
// at different times on a shared machine cannot be compared.
#pragma once

#include <string>

#include "tools/benchmark/rounds.h"

namespace penstock::benchmark {

// Prepares the measurement `what`. "memcpy": GB/s of copying 64 MB with one thread. "fma": GFLOP/s
// of one thread with 256-bit registers, the upper bound for every AVX2 kernel.
StatusOr<Round> PrepareCalibration(const std::string& what);

}  // namespace penstock::benchmark

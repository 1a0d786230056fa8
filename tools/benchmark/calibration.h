// SPDX-License-Identifier: Apache-2.0
//
// Measures what the machine can do at the moment, for the head of a report: numbers of different
// minutes on a shared machine mean little without it.
#pragma once

#include <string>

#include "tools/benchmark/rounds.h"

namespace penstock::benchmark {

// what "memcpy": GB/s of copying 64 MB, one thread. "fma": GFLOP/s of one thread on 256-bit
// registers, from which every AVX2 kernel takes its share.
StatusOr<Round> PrepareCalibration(const std::string& what);

}  // namespace penstock::benchmark

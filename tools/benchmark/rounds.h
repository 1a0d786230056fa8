// SPDX-License-Identifier: Apache-2.0
//
// Round: a measurement that stands ready, so that a round of it costs the time of its steps and not
// that of building graphs.
#pragma once

#include <functional>

#include "core/base/status.h"

namespace penstock::benchmark {

// Measures for about kRoundSeconds and gives the value in the measurement's unit. Borrows what it
// was made of. Single-threaded.
using Round = std::function<StatusOr<double>()>;

inline constexpr double kRoundSeconds = 0.4;

// The median time of a step over one round, after a few to warm up. The first error ends it.
StatusOr<double> MedianSeconds(const std::function<Status()>& step);

}  // namespace penstock::benchmark

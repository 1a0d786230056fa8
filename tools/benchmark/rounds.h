// SPDX-License-Identifier: Apache-2.0
//
// Round: a prepared measurement. Its graphs are built when it is prepared, so that a round takes
// only the time of its steps.
#pragma once

#include <functional>

#include "core/base/status.h"

namespace penstock::benchmark {

// Measures for about kRoundSeconds and returns the value in the measurement's unit. Borrows the
// objects that it was made from. Single-threaded.
using Round = std::function<StatusOr<double>()>;

inline constexpr double kRoundSeconds = 0.4;

// Returns the median time of a step over one round, after a few warm-up steps. Returns the first
// error.
StatusOr<double> MedianSeconds(const std::function<Status()>& step);
// Does the same with the mean, because some steps of an input pipeline take longer than others.
StatusOr<double> MeanSeconds(const std::function<Status()>& step);

}  // namespace penstock::benchmark

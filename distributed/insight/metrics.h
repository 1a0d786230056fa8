// SPDX-License-Identifier: Apache-2.0
//
// Writes the state of one task in Prometheus's text format.
#pragma once

#include <string>

#include "proto/penstock/insight.pb.h"

namespace penstock {

// Returns the metrics. Every name begins with penstock_. A restart of the task resets the counters.
std::string MetricsText(const wire::TaskReport& task);

}  // namespace penstock

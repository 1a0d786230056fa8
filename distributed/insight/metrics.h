// SPDX-License-Identifier: Apache-2.0
//
// The state of one task in the text format of Prometheus.
#pragma once

#include <string>

#include "proto/penstock/insight.pb.h"

namespace penstock {

// Every name begins with penstock_. Counters begin anew with the task.
std::string MetricsText(const wire::TaskReport& task);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Asks a cluster for its report, from a process outside of it. For the commands `penstock status`,
// `top`, `why` and `cost`.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "proto/penstock/cost.pb.h"
#include "proto/penstock/insight.pb.h"

namespace penstock {

// Asks the task at `target`, "grpc://host:port" or "host:port", for the reports of its whole
// cluster. Takes `timeout_ms` for the other tasks, and a second more for this one. InvalidArgument
// where `target` is malformed, Unavailable or DeadlineExceeded where the task does not answer; the
// text names it.
StatusOr<wire::ClusterReport> AskCluster(const std::string& target, int64_t timeout_ms = 1'500);

// Asks the task at `target` for the costs of the sessions whose master it is, of at most
// `steps_max` steps each. Waits 60 s: the task compiles them; DeadlineExceeded says so. Else errors
// as above.
StatusOr<wire::CostReport> AskCosts(const std::string& target, int steps_max);

}  // namespace penstock

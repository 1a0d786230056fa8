// SPDX-License-Identifier: Apache-2.0
//
// The state of a cluster as tables, as text for a terminal, and as JSON, for `penstock status`,
// `penstock top` and the status page.
#pragma once

#include <string>
#include <vector>

#include "proto/penstock/insight.pb.h"

namespace penstock {

struct StatusTable {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header
};

// Returns the tables of tasks, replicas, programs that differ, sessions, staleness, checkpoints,
// queues, variables and traffic. Tables without rows are left out, except that of tasks.
std::vector<StatusTable> StatusTables(const wire::ClusterReport& cluster);
// Returns "3 tasks, all answer; 2 sessions, 1 step in flight, 120.0 steps/s, 34 MB of variables".
std::string StatusLine(const wire::ClusterReport& cluster);
// Returns StatusLine and StatusTables, in columns for a terminal.
std::string StatusText(const wire::ClusterReport& cluster);
// Returns tables of the memory that tensors take, on each device and in each session: in use now,
// at the peak, and the limits.
std::string MemoryText(const wire::ClusterReport& cluster);
// Returns the report as one line of JSON, with the field names of proto/penstock/insight.proto.
// 64-bit numbers are strings, as usual in Protobuf's JSON.
std::string StatusJson(const wire::ClusterReport& cluster);

}  // namespace penstock

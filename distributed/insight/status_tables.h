// SPDX-License-Identifier: Apache-2.0
//
// The state of a cluster as tables of text: what `penstock status`, `penstock top` and the status
// page show.
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

// Tasks, replicas, sessions, checkpoints, queues, variables, traffic; tables without rows are left
// out, but for the tasks.
std::vector<StatusTable> StatusTables(const wire::ClusterReport& cluster);
// "3 tasks, all answer; 2 sessions, 1 step in flight, 120.0 steps/s, 34 MB of variables".
std::string StatusLine(const wire::ClusterReport& cluster);
// Line and tables in columns, for a terminal.
std::string StatusText(const wire::ClusterReport& cluster);
// The memory of tensors on each device, and what each session holds: in use now, at the peak, and
// the limits.
std::string MemoryText(const wire::ClusterReport& cluster);
// The report itself as one line of JSON, with the names of proto/penstock/insight.proto. As
// Protobuf has it, numbers of 64 bits are strings.
std::string StatusJson(const wire::ClusterReport& cluster);

}  // namespace penstock

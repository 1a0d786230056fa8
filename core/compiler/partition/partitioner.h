// SPDX-License-Identifier: Apache-2.0
//
// PartitionGraph: cuts a placed graph into one graph per device (white paper 3.2.2).
//
// Each cut data edge becomes a _Send beside its source and a _Recv beside its consumers: one pair
// per source tensor and destination device, however many consumers there are (canonical Recv). A
// cut control edge becomes such a pair for an empty tensor. Constants are not sent: each device
// that uses one gets its own copy.
//
// Loops may be spread over devices (control_loops.h). A value that enters a loop enters it on each
// device that uses the value, so that it is sent once per run of the loop.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/partition/partition.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

// Returns the partitions in order of device name. REQUIRES: every node has an assigned device among
// `devices`. InvalidArgument if a ref edge leads to another device, or a loop cannot be spread over
// its devices. `urgency`, by node id, orders the nodes of a partition that wait for nothing, the
// most urgent first. Executors begin with these nodes in that order, so variables are sent in it,
// too. If `urgency` is empty, the graph's order is kept.
StatusOr<std::vector<Partition>> PartitionGraph(const Graph& graph,
                                                const std::vector<DeviceInfo>& devices,
                                                const std::vector<double>& urgency = {});

}  // namespace penstock

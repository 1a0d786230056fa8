// SPDX-License-Identifier: Apache-2.0
//
// PartitionGraph: cuts a placed graph into one graph per device (white paper 3.2.2).
//
// Each cut data edge becomes a _Send on the device of its source and a _Recv on the device of its
// consumers. There is one pair per source tensor and destination device, for any number of
// consumers (canonical Recv). A cut control edge becomes such a pair for an empty tensor. Constants
// are not sent: each device that uses a constant gets its own copy of the node.
//
// Loops may be spread over devices (control_loops.h). If a value enters a loop, each device that
// uses the value gets its own Enter, so that the value is sent once per run of the loop.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/partition/partition.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

// Returns the partitions in order of device name. REQUIRES: every node has an assigned device among
// `devices`. InvalidArgument if a ref edge leads to another device, or a loop cannot be spread over
// its devices. `urgency`, by node id, orders the nodes of a partition that have no inputs, the most
// urgent first. Executors start these nodes in this order, so they also send variables in it. If
// `urgency` is empty, these nodes stay in the graph's order.
StatusOr<std::vector<Partition>> PartitionGraph(const Graph& graph,
                                                const std::vector<DeviceInfo>& devices,
                                                const std::vector<double>& urgency = {});

}  // namespace penstock

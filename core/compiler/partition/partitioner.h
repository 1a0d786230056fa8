// SPDX-License-Identifier: Apache-2.0
//
// PartitionGraph: cuts a placed graph into one graph per device (white paper 3.2.2).
//
// Each cut data edge becomes a _Send beside its source and a _Recv beside its consumers: one pair
// per source tensor and destination device, however many consumers there are (canonical Recv). A
// cut control edge becomes such a pair for an empty tensor. Constants are not sent: each device
// that uses one gets its own copy.
//
// Loops may be spread over devices: control_loops.h. What enters one as a constant enters it on
// each device that uses it, so that it is sent once per run of the loop.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/partition/partition.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

// REQUIRES every node to have an assigned device among `devices`. In order of device name.
// `urgency`, by node id: nodes that wait for nothing come in the partitions in order of it, the
// largest first. An executor begins with them in that order, so variables leave in it. Empty: they
// come as in the graph.
StatusOr<std::vector<Partition>> PartitionGraph(const Graph& graph,
                                                const std::vector<DeviceInfo>& devices,
                                                const std::vector<double>& urgency = {});

}  // namespace penstock

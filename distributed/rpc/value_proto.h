// SPDX-License-Identifier: Apache-2.0
//
// Values that the services send and receive, to and from their messages. The other direction checks
// what it reads.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/op/device_name.h"
#include "core/runtime/step_stats.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/session/cost_graph.h"

namespace tensorflow {
class ClusterDef;
class CostGraphDef;
class DeviceAttributes;
class StepStats;
}  // namespace tensorflow

namespace penstock {

void ToProto(const DeviceInfo& device, tensorflow::DeviceAttributes* proto);
StatusOr<DeviceInfo> FromProto(const tensorflow::DeviceAttributes& proto);

void ToProto(const ClusterSpec& cluster, tensorflow::ClusterDef* proto);
StatusOr<ClusterSpec> FromProto(const tensorflow::ClusterDef& proto);

void ToProto(const std::vector<DeviceStats>& stats, tensorflow::StepStats* proto);
StatusOr<std::vector<DeviceStats>> FromProto(const tensorflow::StepStats& proto);

// A time is in whole microseconds there, rounded up: 0 is a node that did not run.
void ToProto(const std::vector<CostNode>& nodes, tensorflow::CostGraphDef* proto);
StatusOr<std::vector<CostNode>> FromProto(const tensorflow::CostGraphDef& proto);

}  // namespace penstock

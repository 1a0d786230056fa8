// SPDX-License-Identifier: Apache-2.0
//
// Converts devices, clusters, statistics and costs of steps, and training programs to and from the
// messages of the services. FromProto checks its input, which comes from other processes.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/op/device_name.h"
#include "core/runtime/step_stats.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/session/cost_graph.h"
#include "distributed/worker/training_program.h"

namespace tensorflow {
class ClusterDef;
class CostGraphDef;
class DeviceAttributes;
class StepStats;
}  // namespace tensorflow

namespace penstock {
namespace wire {
class TrainingProgram;
}  // namespace wire

void ToProto(const DeviceInfo& device, tensorflow::DeviceAttributes* proto);
StatusOr<DeviceInfo> FromProto(const tensorflow::DeviceAttributes& proto);

void ToProto(const ClusterSpec& cluster, tensorflow::ClusterDef* proto);
StatusOr<ClusterSpec> FromProto(const tensorflow::ClusterDef& proto);

void ToProto(const std::vector<DeviceStats>& stats, tensorflow::StepStats* proto);
StatusOr<std::vector<DeviceStats>> FromProto(const tensorflow::StepStats& proto);

// Convert costs. The message has times in whole microseconds, rounded up; 0 means that the node did
// not run.
void ToProto(const std::vector<CostNode>& nodes, tensorflow::CostGraphDef* proto);
StatusOr<std::vector<CostNode>> FromProto(const tensorflow::CostGraphDef& proto);

void ToProto(const TrainingProgram& program, wire::TrainingProgram* proto);
// Drops nodes beyond TrainingProgram::kNodesMax, and texts longer than kTextMax.
TrainingProgram FromProto(const wire::TrainingProgram& proto);

}  // namespace penstock

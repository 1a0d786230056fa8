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

namespace tensorflow {
class ClusterDef;
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

}  // namespace penstock

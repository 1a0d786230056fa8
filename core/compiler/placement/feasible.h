// SPDX-License-Identifier: Apache-2.0
//
// FeasibleDevices: finds the devices on which each colocation group may run. They must match the
// group's constraint and have kernels for all its members. If the group names no job, they must be
// on the client's task.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/compiler/placement/colocation.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

class FeasibleDevices {
 public:
  struct Options {
    // If true, and no device matches a group's constraint because of the device type or index in
    // it, the group may use the devices that match the other components.
    bool soft = false;
    // If true, a node that names no job may run on any task; else only on the task of
    // `client_device`.
    bool any_task = false;
    DeviceName client_device;
  };

  // Returns, by node id of each group's representative, the indices in `devices` of the devices on
  // which the group may run, in ascending order; at least one. If there is none, returns an
  // InvalidArgument. It names a node and its constraint, and lists the devices; or it names the
  // smallest set of nodes of the group that together exclude every device, with the constraint or
  // the kernels of each node.
  static StatusOr<std::vector<std::vector<int>>> Of(const Graph& graph,
                                                    const ColocationGroups& groups,
                                                    const std::vector<DeviceInfo>& devices,
                                                    const Options& options);

 private:
  FeasibleDevices(const Graph& graph, const ColocationGroups& groups,
                  const std::vector<DeviceInfo>& devices, const Options& options)
      : graph_(graph), groups_(groups), devices_(devices), options_(options) {}

  StatusOr<std::vector<int>> DevicesOfGroup(const std::vector<const Node*>& members);
  const std::vector<int>& Matching(const DeviceName& constraint);
  bool HasKernel(const Node& node, const std::string& type) const;
  // Returns the devices among `devices` on which every member has a kernel.
  std::vector<int> Capable(const std::vector<const Node*>& members, std::vector<int> devices) const;
  Status NoDeviceError(const Node& node, const DeviceName& constraint);
  // Returns the error of a group for which no device has kernels for all members. `device` is a
  // device that matches the group's constraint.
  Status NoKernelsError(const std::vector<const Node*>& members, int device) const;
  Status NoKernelError(const Node& node, const DeviceName& constraint, int device) const;
  // Returns, by device, whether the node cannot run there: because the node's own constraint
  // excludes the device (type and index are ignored if Options::soft), the device has no kernel for
  // the node, or the node may use only the client's task.
  std::vector<bool> DevicesExcludedBy(const Node& node) const;
  std::string DescribeExclusion(const Node& node) const;

  const Graph& graph_;
  const ColocationGroups& groups_;
  const std::vector<DeviceInfo>& devices_;
  const Options& options_;
  std::map<DeviceName, std::vector<int>> matching_;  // key: constraint
};

}  // namespace penstock

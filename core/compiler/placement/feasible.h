// SPDX-License-Identifier: Apache-2.0
//
// FeasibleDevices: finds the devices on which each colocation group may run. They depend on its
// constraint, the kernels of all its members, and the client's task if no job is named.
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
    // If a constraint on type or index leaves no device, allow any other device of that task.
    bool soft = false;
    // If true, a node that names no job may run on any task; else only on the task of
    // `client_device`.
    bool any_task = false;
    DeviceName client_device;
  };

  // Returns, by node id of each group's representative, indices in `devices`, in their order, never
  // empty. InvalidArgument names the node and its constraint, and lists the devices; or it names
  // the smallest set of nodes of a group that leave no device, with the constraint or the kernels
  // of each.
  static StatusOr<std::vector<std::vector<int>>> Of(const Graph& graph,
                                                    const ColocationGroups& groups,
                                                    const std::vector<DeviceInfo>& devices,
                                                    const Options& options);

 private:
  FeasibleDevices(const Graph& graph, const ColocationGroups& groups,
                  const std::vector<DeviceInfo>& devices, const Options& options)
      : graph_(graph), groups_(groups), devices_(devices), options_(options) {}

  StatusOr<std::vector<int>> OfGroup(const std::vector<const Node*>& members);
  const std::vector<int>& Matching(const DeviceName& constraint);
  bool HasKernel(const Node& node, const std::string& type) const;
  // Returns those of `devices` on which every member has a kernel.
  std::vector<int> Capable(const std::vector<const Node*>& members, std::vector<int> devices) const;
  Status NoDevice(const Node& node, const DeviceName& constraint);
  // The error of a group whose constraint matches `device`, among others, but that has no device
  // with kernels for all members.
  Status NoKernels(const std::vector<const Node*>& members, int device) const;
  Status NoKernel(const Node& node, const DeviceName& constraint, int device) const;
  // Returns, by device, whether the node cannot run there: because of what it asks for itself, or
  // for lack of a kernel.
  std::vector<bool> ExcludedBy(const Node& node) const;
  std::string WhatExcludes(const Node& node) const;

  const Graph& graph_;
  const ColocationGroups& groups_;
  const std::vector<DeviceInfo>& devices_;
  const Options& options_;
  std::map<DeviceName, std::vector<int>> matching_;  // key: constraint
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/feasible.h"

#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/compiler/placement/smallest_cover.h"

namespace penstock {
namespace {

DeviceName RelaxConstraint(DeviceName constraint) {
  constraint.type.reset();
  constraint.index.reset();
  return constraint;
}

}  // namespace

StatusOr<std::vector<std::vector<int>>> FeasibleDevices::Of(const Graph& graph,
                                                            const ColocationGroups& groups,
                                                            const std::vector<DeviceInfo>& devices,
                                                            const Options& options) {
  FeasibleDevices feasible(graph, groups, devices, options);
  std::vector<std::vector<const Node*>> members(graph.max_id());
  for (const Node* node : graph.nodes()) members[groups.Find(node->id())].push_back(node);
  std::vector<std::vector<int>> of_group(graph.max_id());
  for (size_t group = 0; group < members.size(); ++group) {
    if (members[group].empty()) continue;
    ASSIGN_OR_RETURN(of_group[group], feasible.DevicesOfGroup(members[group]));
  }
  return of_group;
}

StatusOr<std::vector<int>> FeasibleDevices::DevicesOfGroup(
    const std::vector<const Node*>& members) {
  const DeviceName& constraint = groups_.constraint(members.front()->id());
  const std::vector<int>& exact = Matching(constraint);
  std::vector<int> capable = Capable(members, exact);
  if (capable.empty() && options_.soft)
    capable = Capable(members, Matching(RelaxConstraint(constraint)));
  if (!capable.empty()) return capable;
  if (exact.empty()) return NoDeviceError(*members.front(), constraint);
  return NoKernelsError(members, exact.front());
}

const std::vector<int>& FeasibleDevices::Matching(const DeviceName& constraint) {
  const auto [known, is_new] = matching_.try_emplace(constraint);
  if (!is_new) return known->second;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const DeviceName& name = devices_[d].name;
    const bool only_client_task = !constraint.job && !options_.any_task;
    if (only_client_task && !name.SameTask(options_.client_device)) continue;
    if (constraint.Matches(name)) known->second.push_back(static_cast<int>(d));
  }
  return known->second;
}

bool FeasibleDevices::HasKernel(const Node& node, const std::string& type) const {
  return graph_.registry().FindKernel(node.op_name(), type, node.attrs()).ok();
}

std::vector<int> FeasibleDevices::Capable(const std::vector<const Node*>& members,
                                          std::vector<int> devices) const {
  for (const Node* node : members) {
    std::map<string_view, bool> by_type;
    std::erase_if(devices, [&](int d) {
      const std::string& type = *devices_[d].name.type;
      const auto [known, is_new] = by_type.try_emplace(type);
      if (is_new) known->second = HasKernel(*node, type);
      return !known->second;
    });
    if (devices.empty()) break;
  }
  return devices;
}

Status FeasibleDevices::NoDeviceError(const Node& node, const DeviceName& constraint) {
  std::vector<std::string> names;
  for (const DeviceInfo& device : devices_) names.push_back(device.name.ToString());
  const bool other_type = !Matching(RelaxConstraint(constraint)).empty();
  return InvalidArgument("Cannot assign a device for operation ", node.name(),
                         ": it was explicitly assigned to ", constraint.ToString(),
                         " but available devices are [ ", absl::StrJoin(names, ", "), " ]",
                         other_type && !options_.soft
                             ? ". allow_soft_placement would take another device of that task."
                             : "");
}

Status FeasibleDevices::NoKernelError(const Node& node, const DeviceName& constraint,
                                      int device) const {
  const DeviceName& name = devices_[device].name;
  const Status why =
      graph_.registry().FindKernel(node.op_name(), *name.type, node.attrs()).status();
  return InvalidArgument("Cannot place node '", node.name(), "' on '", name.ToString(),
                         "' (requested: '", constraint.ToString(), "'): ", why.message());
}

std::vector<bool> FeasibleDevices::DevicesExcludedBy(const Node& node) const {
  const DeviceName own = groups_.ConstraintOf(node);
  const DeviceName constraint = options_.soft ? RelaxConstraint(own) : own;
  const bool has_job = groups_.constraint(node.id()).job.has_value();
  std::vector<bool> excluded;
  for (const DeviceInfo& device : devices_) {
    // As in Matching, only the client's task counts if the group names no job. The error does not
    // name a node as the reason for that.
    const bool only_client_task = !has_job && !options_.any_task;
    const bool ignored = only_client_task && !device.name.SameTask(options_.client_device);
    excluded.push_back(ignored || !constraint.Matches(device.name) ||
                       !HasKernel(node, *device.name.type));
  }
  return excluded;
}

// Returns "'x' (op Input) asks for '/device:GPU:0' and has kernels for CPU only".
std::string FeasibleDevices::DescribeExclusion(const Node& node) const {
  const DeviceName constraint = groups_.ConstraintOf(node);
  std::set<std::string> all, capable;
  for (const DeviceInfo& device : devices_) {
    all.insert(*device.name.type);
    if (HasKernel(node, *device.name.type)) capable.insert(*device.name.type);
  }
  std::vector<std::string> what;
  if (constraint != DeviceName()) what.push_back(StrCat("asks for '", constraint.ToString(), "'"));
  if (capable != all) {
    what.push_back(capable.empty()
                       ? "has no kernel for its types"
                       : StrCat("has kernels for ", absl::StrJoin(capable, ", "), " only"));
  }
  return StrCat("'", node.name(), "' (op ", node.op_name(), ") ", absl::StrJoin(what, " and "));
}

Status FeasibleDevices::NoKernelsError(const std::vector<const Node*>& members, int device) const {
  std::vector<std::vector<bool>> excluded;
  for (const Node* node : members) excluded.push_back(DevicesExcludedBy(*node));
  std::vector<const Node*> conflict;
  for (const int member : SmallestCover(excluded)) conflict.push_back(members[member]);
  if (conflict.size() == 1) {
    return NoKernelError(*conflict[0], groups_.constraint(conflict[0]->id()), device);
  }
  std::vector<std::string> names, what;
  std::string chains;
  for (size_t i = 0; i < conflict.size(); ++i) {
    names.push_back(StrCat("'", conflict[i]->name(), "'"));
    what.push_back(DescribeExclusion(*conflict[i]));
    if (i > 0) chains += groups_.ChainBetween(*conflict[i - 1], *conflict[i]);
  }
  return InvalidArgument("Cannot place nodes ", absl::StrJoin(names, ", "),
                         ", which must be on one device: ", absl::StrJoin(what, "; "), chains);
}

}  // namespace penstock

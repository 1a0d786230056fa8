// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/feasible.h"

#include <utility>

#include "absl/strings/str_join.h"

namespace penstock {
namespace {

DeviceName Relaxed(DeviceName constraint) {
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
    ASSIGN_OR_RETURN(of_group[group], feasible.OfGroup(members[group]));
  }
  return of_group;
}

StatusOr<std::vector<int>> FeasibleDevices::OfGroup(const std::vector<const Node*>& members) {
  const DeviceName& constraint = groups_.constraint(members.front()->id());
  const std::vector<int>& exact = Matching(constraint);
  const Node* without = nullptr;
  std::vector<int> capable = Capable(members, exact, &without);
  if (capable.empty() && options_.soft) {
    const Node* ignored = nullptr;
    capable = Capable(members, Matching(Relaxed(constraint)), &ignored);
  }
  if (!capable.empty()) return capable;
  if (exact.empty()) return NoDevice(*members.front(), constraint);
  return NoKernel(*without, constraint, exact.front());
}

const std::vector<int>& FeasibleDevices::Matching(const DeviceName& constraint) {
  const auto [known, is_new] = matching_.try_emplace(constraint);
  if (!is_new) return known->second;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const DeviceName& name = devices_[d].name;
    const bool elsewhere = !constraint.job && !options_.any_task;
    if (elsewhere && !name.SameTask(options_.client_device)) continue;
    if (constraint.Matches(name)) known->second.push_back(static_cast<int>(d));
  }
  return known->second;
}

std::vector<int> FeasibleDevices::Capable(const std::vector<const Node*>& members,
                                          std::vector<int> devices, const Node** without) const {
  for (const Node* node : members) {
    std::map<string_view, bool> by_type;
    std::erase_if(devices, [&](int d) {
      const std::string& type = *devices_[d].name.type;
      const auto [known, is_new] = by_type.try_emplace(type);
      if (is_new) {
        known->second = graph_.registry().FindKernel(node->op_name(), type, node->attrs()).ok();
      }
      return !known->second;
    });
    if (!devices.empty()) continue;
    *without = node;
    break;
  }
  return devices;
}

Status FeasibleDevices::NoDevice(const Node& node, const DeviceName& constraint) {
  std::vector<std::string> names;
  for (const DeviceInfo& device : devices_) names.push_back(device.name.ToString());
  const bool other_type = !Matching(Relaxed(constraint)).empty();
  return InvalidArgument("Cannot place node '", node.name(), "': no device matches '",
                         constraint.ToString(), "'. The devices are: ", absl::StrJoin(names, ", "),
                         other_type && !options_.soft
                             ? ". allow_soft_placement would take another device of that task."
                             : "");
}

Status FeasibleDevices::NoKernel(const Node& node, const DeviceName& constraint, int device) const {
  const DeviceName& name = devices_[device].name;
  const Status why =
      graph_.registry().FindKernel(node.op_name(), *name.type, node.attrs()).status();
  return InvalidArgument("Cannot place node '", node.name(), "' on '", name.ToString(),
                         "' (requested: '", constraint.ToString(), "'): ", why.message());
}

}  // namespace penstock

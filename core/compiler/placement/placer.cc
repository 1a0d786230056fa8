// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/placer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/compiler/placement/colocation.h"

namespace penstock {
namespace {

class Placer {
 public:
  Placer(const std::vector<DeviceInfo>& devices, const CostTable& costs,
         const PlaceOptions& options, Graph* graph, ColocationGroups groups)
      : devices_(devices),
        costs_(costs),
        options_(options),
        graph_(*graph),
        groups_(std::move(groups)),
        feasible_(graph->max_id()),
        decision_(graph->max_id(), -1),
        finish_ns_(graph->max_id(), 0),
        free_ns_(devices.size(), 0) {}

  StatusOr<PlacementReport> Run() {
    for (const DeviceInfo& device : devices_) report_.devices.push_back(device.name.ToString());
    for (Node* node : graph_.nodes()) RETURN_IF_ERROR(Restrict(*node));
    if (widened_) {
      for (Node* node : graph_.nodes()) RETURN_IF_ERROR(RestrictAgain(*node));
    }
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* node : order) {
      int& decision = decision_[groups_.Find(node->id())];
      if (decision < 0) {
        report_.groups.push_back(Choose(*node));
        decision = static_cast<int>(report_.groups.size()) - 1;
      }
      PlacementReport::Group& group = report_.groups[decision];
      ++group.num_nodes;
      Simulate(*node, group.device);
      graph_.set_assigned_device(node, report_.devices[group.device]);
    }
    return std::move(report_);
  }

 private:
  // Narrows the devices of the node's group to those that can run the node.
  Status Restrict(const Node& node) {
    const int group = groups_.Find(node.id());
    if (feasible_[group].empty()) {
      ASSIGN_OR_RETURN(feasible_[group], Matching(node, groups_.constraint(node.id())));
    }
    std::vector<int> capable = Capable(node, feasible_[group]);
    if (capable.empty() && options_.allow_soft_placement) {
      DeviceName relaxed = groups_.constraint(node.id());
      relaxed.type.reset();
      relaxed.index.reset();
      ASSIGN_OR_RETURN(std::vector<int> wider, Matching(node, relaxed));
      capable = Capable(node, wider);
      widened_ = true;
    }
    if (capable.empty()) return NoKernel(node, feasible_[group]);
    feasible_[group] = std::move(capable);
    return OkStatus();
  }

  // Other devices than before were found for a node: those before it in its group may lack kernels
  // there.
  Status RestrictAgain(const Node& node) {
    std::vector<int>& feasible = feasible_[groups_.Find(node.id())];
    std::vector<int> capable = Capable(node, feasible);
    if (capable.empty()) return NoKernel(node, feasible);
    feasible = std::move(capable);
    return OkStatus();
  }

  StatusOr<std::vector<int>> Matching(const Node& node, const DeviceName& constraint) const {
    std::vector<int> exact, any_type;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const DeviceName& name = devices_[d].name;
      if (!constraint.job && !name.SameTask(options_.client_device)) continue;
      if (constraint.Matches(name)) exact.push_back(static_cast<int>(d));
      DeviceName relaxed = constraint;
      relaxed.type.reset();
      relaxed.index.reset();
      if (relaxed.Matches(name)) any_type.push_back(static_cast<int>(d));
    }
    if (!exact.empty()) return exact;
    if (options_.allow_soft_placement && !any_type.empty()) return any_type;
    return InvalidArgument("Cannot place node '", node.name(), "': no device matches '",
                           constraint.ToString(),
                           "'. The devices are: ", absl::StrJoin(report_.devices, ", "),
                           any_type.empty() ? ""
                                            : ". allow_soft_placement would take another device "
                                              "of that task.");
  }

  std::vector<int> Capable(const Node& node, const std::vector<int>& devices) const {
    std::vector<int> capable;
    for (int d : devices) {
      const std::string& type = *devices_[d].name.type;
      if (graph_.registry().FindKernel(node.op_name(), type, node.attrs()).ok()) {
        capable.push_back(d);
      }
    }
    return capable;
  }

  Status NoKernel(const Node& node, const std::vector<int>& devices) const {
    const DeviceInfo& device = devices_[devices.front()];
    const Status why =
        graph_.registry().FindKernel(node.op_name(), *device.name.type, node.attrs()).status();
    return InvalidArgument("Cannot place node '", node.name(), "' on '", device.name.ToString(),
                           "' (requested: '", groups_.constraint(node.id()).ToString(),
                           "'): ", why.message());
  }

  double StartNanos(const Node& node, int device) const {
    double ready = 0;
    for (const Endpoint& in : node.inputs()) {
      const int decision = decision_[groups_.Find(in.node->id())];
      if (decision < 0) continue;  // the far end of a loop's back edge
      const int from = report_.groups[decision].device;
      ready = std::max(
          ready, finish_ns_[in.node->id()] +
                     costs_.TransferNanos(*in.node, in.index, devices_[from], devices_[device]));
    }
    for (const Node* control : node.control_inputs()) {
      ready = std::max(ready, finish_ns_[control->id()]);
    }
    return std::max(ready, free_ns_[device]);
  }

  // Decides where the group of `node` goes.
  PlacementReport::Group Choose(const Node& node) const {
    using Reason = PlacementReport::Reason;
    const int id = groups_.Find(node.id());
    PlacementReport::Group group{.node = node.name(), .device = feasible_[id].front()};
    double soonest = std::numeric_limits<double>::infinity();
    group.candidates.reserve(feasible_[id].size());
    if (feasible_[id].size() > 1) {
      group.reason = groups_.stateful(node.id()) ? Reason::kHoldsState : Reason::kEndsSoonest;
    }
    for (const int device : feasible_[id]) {
      const double end = EndNanos(node, device);
      group.candidates.push_back({device, end});
      if (group.reason != Reason::kEndsSoonest || end >= soonest) continue;
      soonest = end;
      group.device = device;
    }
    return group;
  }

  double EndNanos(const Node& node, int device) const {
    return StartNanos(node, device) + costs_.NodeNanos(node, devices_[device]);
  }

  void Simulate(const Node& node, int device) {
    finish_ns_[node.id()] = free_ns_[device] = EndNanos(node, device);
  }

  const std::vector<DeviceInfo>& devices_;
  const CostTable& costs_;
  const PlaceOptions& options_;
  Graph& graph_;
  const ColocationGroups groups_;
  std::vector<std::vector<int>> feasible_;  // by group
  bool widened_ = false;                    // soft placement went beyond a group's devices
  std::vector<int> decision_;               // by group: in the report; -1: not yet
  std::vector<double> finish_ns_;           // by node
  std::vector<double> free_ns_;             // by device: when its last node ends
  PlacementReport report_;
};

}  // namespace

StatusOr<PlacementReport> Place(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                                const PlaceOptions& options, Graph* graph) {
  if (devices.empty()) return FailedPrecondition("there are no devices to place the graph on");
  ASSIGN_OR_RETURN(ColocationGroups groups,
                   ColocationGroups::Of(*graph, options.allow_soft_placement));
  return Placer(devices, costs, options, graph, std::move(groups)).Run();
}

}  // namespace penstock

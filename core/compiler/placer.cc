// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/compiler/colocation.h"

namespace penstock {
namespace {

class Placer {
 public:
  Placer(const std::vector<DeviceInfo>& devices, const CostModel& costs,
         const PlaceOptions& options, Graph* graph, ColocationGroups groups)
      : devices_(devices),
        costs_(costs),
        options_(options),
        graph_(*graph),
        groups_(std::move(groups)),
        feasible_(graph->max_id()),
        choice_(graph->max_id(), -1),
        finish_ns_(graph->max_id(), 0),
        free_ns_(devices.size(), 0) {}

  Status Run() {
    for (Node* node : graph_.nodes()) RETURN_IF_ERROR(Restrict(*node));
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* node : order) {
      int& chosen = choice_[groups_.Find(node->id())];
      if (chosen < 0) chosen = Choose(*node);
      Simulate(*node, chosen);
      graph_.set_assigned_device(node, devices_[chosen].name.ToString());
    }
    return OkStatus();
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
    }
    if (capable.empty()) return NoKernel(node, feasible_[group]);
    feasible_[group] = std::move(capable);
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
    std::vector<std::string> names;
    for (const DeviceInfo& device : devices_) names.push_back(device.name.ToString());
    return InvalidArgument("Cannot place node '", node.name(), "': no device matches '",
                           constraint.ToString(),
                           "'. The devices are: ", absl::StrJoin(names, ", "),
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
      const int from = choice_[groups_.Find(in.node->id())];
      if (from < 0) continue;  // the far end of a loop's back edge
      ready = std::max(
          ready, finish_ns_[in.node->id()] +
                     costs_.TransferNanos(*in.node, in.index, devices_[from], devices_[device]));
    }
    for (const Node* control : node.control_inputs()) {
      ready = std::max(ready, finish_ns_[control->id()]);
    }
    return std::max(ready, free_ns_[device]);
  }

  int Choose(const Node& node) const {
    const std::vector<int>& devices = feasible_[groups_.Find(node.id())];
    if (groups_.stateful(node.id())) return devices.front();
    int best = devices.front();
    double soonest = std::numeric_limits<double>::infinity();
    for (int d : devices) {
      const double finish = StartNanos(node, d) + costs_.NodeNanos(node, devices_[d]);
      if (finish < soonest) {
        soonest = finish;
        best = d;
      }
    }
    return best;
  }

  void Simulate(const Node& node, int device) {
    const double finish = StartNanos(node, device) + costs_.NodeNanos(node, devices_[device]);
    finish_ns_[node.id()] = finish;
    free_ns_[device] = finish;
  }

  const std::vector<DeviceInfo>& devices_;
  const CostModel& costs_;
  const PlaceOptions& options_;
  Graph& graph_;
  const ColocationGroups groups_;
  std::vector<std::vector<int>> feasible_;  // by group
  std::vector<int> choice_;                 // by group; -1: not yet
  std::vector<double> finish_ns_;           // by node
  std::vector<double> free_ns_;             // by device: when its last node ends
};

}  // namespace

Status Place(const std::vector<DeviceInfo>& devices, const CostModel& costs,
             const PlaceOptions& options, Graph* graph) {
  if (devices.empty()) return FailedPrecondition("there are no devices to place the graph on");
  ASSIGN_OR_RETURN(ColocationGroups groups,
                   ColocationGroups::Of(*graph, options.allow_soft_placement));
  return Placer(devices, costs, options, graph, std::move(groups)).Run();
}

}  // namespace penstock

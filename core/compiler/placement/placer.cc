// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/placer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/compiler/placement/colocation.h"
#include "core/compiler/placement/feasible.h"
#include "core/compiler/placement/placed_problem.h"
#include "core/compiler/placement/problem.h"
#include "core/compiler/placement/report_prediction.h"
#include "core/compiler/placement/search.h"

namespace penstock {
namespace {

using Problem = PlacementProblem;
using Reason = PlacementReport::Reason;

bool HaveEqualSpeed(const DeviceInfo& a, const DeviceInfo& b, const CostTable& costs) {
  return costs.Slowness(a.name) == costs.Slowness(b.name) && a.name.type == b.name.type &&
         a.rates.flops_per_ns == b.rates.flops_per_ns &&
         a.rates.bytes_per_ns == b.rates.bytes_per_ns && a.rates.launch_ns == b.rates.launch_ns;
}

// Makes the placement problem of a graph, and assigns the devices of the solution to the nodes. If
// `state` is not null, also places nodes that hold state by cost, and stores their devices there.
class Placer {
 public:
  Placer(const std::vector<DeviceInfo>& devices, const CostTable& costs,
         const CompileOptions& options, DeviceByNode* state, Graph* graph, ColocationGroups groups)
      : devices_(devices),
        costs_(costs),
        options_(options),
        state_(state),
        graph_(*graph),
        groups_(std::move(groups)),
        group_of_(graph->max_id(), -1) {}

  StatusOr<PlacementReport> Run() {
    ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    ASSIGN_OR_RETURN(feasible_, FeasibleDevices::Of(graph_, groups_, devices_,
                                                    {.soft = options_.allow_soft_placement,
                                                     .any_task = options_.any_task,
                                                     .client_device = options_.client_device}));
    AddDevices();
    AddGroups();
    const auto has_choice = [](const std::vector<int>& devices) { return devices.size() > 1; };
    if (options_.predict || absl::c_any_of(problem_.candidates, has_choice)) AddNodes();
    FoundPlacement found = FindPlacement(problem_, previous_devices_);
    for (Node* node : order_) {
      const std::string& device = report_.devices[found.groups[Group(*node)].device];
      graph_.set_assigned_device(node, device);
      if (state_ != nullptr && groups_.stateful(node->id())) state_->emplace(node->name(), device);
    }
    Report(found);
    return std::move(report_);
  }

 private:
  int Group(const Node& node) const { return group_of_[groups_.Find(node.id())]; }

  void AddDevices() {
    std::map<DeviceName, int> tasks;
    for (const DeviceInfo& device : devices_) {
      report_.devices.push_back(device.name.ToString());
      const int next_task = static_cast<int>(tasks.size());
      const int task = tasks.try_emplace(device.name.Task(), next_task).first->second;
      const auto kind = std::find_if(kinds_.begin(), kinds_.end(), [&](const DeviceInfo* known) {
        return HaveEqualSpeed(*known, device, costs_);
      });
      problem_.devices.push_back({.task = task,
                                  .kind = static_cast<int>(kind - kinds_.begin()),
                                  .lanes = std::max(device.lanes, 1),
                                  .link_in_task = device.link_in_task,
                                  .link_to_tasks = device.link_to_tasks});
      if (kind == kinds_.end()) kinds_.push_back(&device);
    }
    problem_.num_tasks = static_cast<int>(tasks.size());
    problem_.num_kinds = static_cast<int>(kinds_.size());
    const auto master = tasks.find(options_.client_device.Task());
    problem_.master_task = master == tasks.end() ? -1 : master->second;
    AddMeasuredLinks(devices_, costs_, &problem_);
  }

  // Adds the groups in order of their first nodes.
  void AddGroups() {
    std::vector<int> fixed;  // by group: the known device of its state, or -1
    for (const Node* node : order_) {
      int& group = group_of_[groups_.Find(node->id())];
      if (group < 0) {
        group = problem_.num_groups();
        report_.groups.push_back({.node = node->name(), .candidates = {}});
        problem_.candidates.push_back(feasible_[groups_.Find(node->id())]);
        previous_devices_.push_back(PreviousDevice(*node));
        fixed.push_back(-1);
      }
      ++report_.groups[group].num_nodes;
      if (fixed[group] < 0) fixed[group] = IndexOf(options_.state_devices, node->name());
    }
    for (const Node* node : order_) Decide(*node, fixed[Group(*node)]);
  }

  // Sets the devices from which the search may choose for the group of `node`, and records the
  // reason.
  void Decide(const Node& node, int fixed) {
    std::vector<int>& devices = problem_.candidates[Group(node)];
    PlacementReport::Group& decision = report_.groups[Group(node)];
    if (!decision.candidates.empty()) return;
    for (const int device : devices) decision.candidates.push_back({device, 0});
    if (devices.size() == 1) return;
    decision.reason = Reason::kEndsSoonest;
    if (!groups_.stateful(node.id())) return;
    const bool is_fixed = std::count(devices.begin(), devices.end(), fixed) > 0;
    if (state_ != nullptr && !is_fixed) return;
    decision.reason = Reason::kHoldsState;
    devices = {is_fixed ? fixed : devices.front()};
  }

  // Returns the index of the node's device in `devices`; -1 if the node has none there, or the
  // device does not exist.
  int IndexOf(const DeviceByNode* devices, const std::string& node) const {
    if (devices == nullptr) return -1;
    const auto found = devices->find(node);
    if (found == devices->end()) return -1;
    const auto& names = report_.devices;
    const auto at = std::find(names.begin(), names.end(), found->second);
    return at == names.end() ? -1 : static_cast<int>(at - names.begin());
  }

  int PreviousDevice(const Node& node) const {
    return IndexOf(options_.placed_before, node.name());
  }

  void AddNodes() {
    std::vector<int> index(graph_.max_id(), -1), first_output(graph_.max_id(), 0);
    std::vector<Problem::Input> inputs;
    for (const Node* node : order_) {
      inputs.clear();
      for (const Endpoint& in : node->inputs()) {
        const int source = index[in.node->id()];
        if (source < 0 || IsCopied(*in.node)) continue;  // source < 0: the back edge of a loop
        inputs.push_back({source, first_output[in.node->id()] + in.index});
      }
      for (const Node* control : node->control_inputs()) {
        inputs.push_back({index[control->id()], -1});
      }
      AddNode(*node, inputs);
      index[node->id()] = problem_.num_nodes() - 1;
      first_output[node->id()] = static_cast<int>(problem_.output_bytes.size());
      for (int i = 0; i < node->num_outputs(); ++i) {
        problem_.output_bytes.push_back(costs_.OutputBytes(*node, i));
      }
    }
  }

  void AddNode(const Node& node, const std::vector<Problem::Input>& inputs) {
    nanos_.clear();
    device_times_.clear();
    for (const DeviceInfo* kind : kinds_) nanos_.push_back(costs_.NodeNanos(node, *kind));
    const std::vector<int>& devices = problem_.candidates[Group(node)];
    for (const int device : costs_.IsMeasured(node) ? devices : std::vector<int>()) {
      const double nanos = costs_.NodeNanos(node, devices_[device]);
      if (nanos != nanos_[problem_.devices[device].kind]) device_times_.push_back({device, nanos});
    }
    problem_.AddNode(Group(node), inputs, nanos_, device_times_);
  }

  // Returns whether the node is a constant that the partitioner copies to each device that reads
  // it.
  static bool IsCopied(const Node& node) {
    return node.op().is_constant && node.control_inputs().empty();
  }

  void Report(const FoundPlacement& found) {
    report_.kept = found.kept;
    for (size_t g = 0; g < found.groups.size(); ++g) {
      PlacementReport::Group& group = report_.groups[g];
      group.device = found.groups[g].device;
      if (group.reason != Reason::kEndsSoonest) continue;
      if (found.groups[g].moved) group.reason = Reason::kShortensStep;
      group.candidates.clear();
      for (const auto& [device, end_ns] : found.groups[g].candidates) {
        group.candidates.push_back({device, end_ns});
      }
    }
    if (options_.predict) Predict();
    if (options_.predict && options_.describe != nullptr) Describe();
  }

  void Predict() {
    std::vector<int> device;
    for (const PlacementReport::Group& group : report_.groups) device.push_back(group.device);
    ReportPrediction(problem_, order_, device, costs_, &report_);
  }

  void Describe() {
    *options_.describe = {.problem = problem_, .device = {}};
    for (const PlacementReport::Group& group : report_.groups) {
      options_.describe->device.push_back(group.device);
    }
  }

  const std::vector<DeviceInfo>& devices_;
  const CostTable& costs_;
  const CompileOptions& options_;
  DeviceByNode* const state_;
  Graph& graph_;
  const ColocationGroups groups_;
  std::vector<Node*> order_;
  std::vector<std::vector<int>> feasible_;  // by group's node
  std::vector<int> group_of_;               // by group's node: group of the problem
  std::vector<const DeviceInfo*> kinds_;    // one device of each kind
  std::vector<double> nanos_;               // by kind: the time of the node that is being added
  std::vector<Problem::DeviceTime> device_times_;
  std::vector<int> previous_devices_;  // by group: the device that it was on, or -1
  Problem problem_;
  PlacementReport report_;
};

StatusOr<PlacementReport> RunPlacer(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                                    const CompileOptions& options, DeviceByNode* state,
                                    Graph* graph) {
  if (devices.empty()) return FailedPrecondition("there are no devices to place the graph on");
  ASSIGN_OR_RETURN(ColocationGroups groups,
                   ColocationGroups::Of(*graph, options.allow_soft_placement));
  return Placer(devices, costs, options, state, graph, std::move(groups)).Run();
}

}  // namespace

StatusOr<PlacementReport> Place(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                                const CompileOptions& options, Graph* graph) {
  return RunPlacer(devices, costs, options, /*state=*/nullptr, graph);
}

StatusOr<DeviceByNode> PlaceState(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                  const CompileOptions& options) {
  CompileOptions on_any_task = options;
  on_any_task.any_task = true;
  on_any_task.predict = false;
  Graph placed = graph.Clone();
  // If shape inference fails, estimate without shapes: only steps that run the wrong node should
  // report the error.
  const StatusOr<ShapeMap> shapes = InferShapes(placed);
  CostTable costs;
  costs.Estimate(placed, shapes.ok() ? *shapes : ShapeMap());
  DeviceByNode state;
  RETURN_IF_ERROR(RunPlacer(devices, costs, on_any_task, &state, &placed).status());
  return state;
}

}  // namespace penstock

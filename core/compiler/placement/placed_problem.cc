// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/placed_problem.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace penstock {
namespace {

void AddDevices(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                const DeviceName& client_device, PlacementProblem* problem) {
  std::map<DeviceName, int> tasks;
  for (const DeviceInfo& device : devices) {
    const int next_task = static_cast<int>(tasks.size());
    const int task = tasks.try_emplace(device.name.Task(), next_task).first->second;
    problem->devices.push_back({.task = task,
                                .lanes = std::max(device.lanes, 1),
                                .link_in_task = device.link_in_task,
                                .link_to_tasks = device.link_to_tasks});
  }
  problem->num_tasks = static_cast<int>(tasks.size());
  problem->num_kinds = 1;
  const auto master = tasks.find(client_device.Task());
  problem->master_task = master == tasks.end() ? -1 : master->second;
  AddMeasuredLinks(devices, costs, problem);
}

// Returns whether the node is a constant that the partitioner copies to each device that reads it.
bool IsCopied(const Node& node) { return node.op().is_constant && node.control_inputs().empty(); }

std::vector<PlacementProblem::Input> InputsOf(const Node& node, const PlacedProblem& placed) {
  std::vector<PlacementProblem::Input> inputs;
  for (const Endpoint& in : node.inputs()) {
    const int source = placed.index[in.node->id()];
    if (source < 0 || IsCopied(*in.node)) continue;  // source < 0: the back edge of a loop
    inputs.push_back({source, placed.first_output[source] + in.index});
  }
  for (const Node* control : node.control_inputs()) {
    inputs.push_back({placed.index[control->id()], -1});
  }
  return inputs;
}

// Returns whether the node's outputs share memory that another node or a variable holds, and so
// take no bytes of their own.
bool PassesOn(const Node& node) { return !node.op().ref_form.empty() || node.op().only_reads; }

// A span of time in which some bytes are taken.
struct Span {
  double begin_ns = 0, end_ns = 0, bytes = 0;
};

double PeakOf(const std::vector<Span>& spans) {
  std::vector<std::pair<double, double>> changes;  // time, bytes; negative bytes first
  for (const Span& span : spans) {
    changes.emplace_back(span.begin_ns, span.bytes);
    changes.emplace_back(span.end_ns, -span.bytes);
  }
  std::sort(changes.begin(), changes.end());
  double now = 0, peak = 0;
  for (const auto& [at, bytes] : changes) peak = std::max(peak, now += bytes);
  return peak;
}

}  // namespace

void AddMeasuredLinks(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                      PlacementProblem* problem) {
  if (costs.links().empty()) return;
  std::vector<int> first_of_task;  // by task: its first device
  for (size_t d = 0; d < devices.size(); ++d) {
    if (problem->devices[d].task == static_cast<int>(first_of_task.size())) {
      first_of_task.push_back(static_cast<int>(d));
    }
  }
  std::vector<LinkRates> links(first_of_task.size() * first_of_task.size());
  for (const int from : first_of_task) {
    for (const int to : first_of_task) {
      if (from == to) continue;
      links[static_cast<size_t>(problem->devices[from].task) * problem->num_tasks +
            problem->devices[to].task] = costs.LinkBetween(devices[from], devices[to]);
    }
  }
  problem->links = std::move(links);
}

StatusOr<PlacedProblem> DescribePlaced(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                       const CostTable& costs, const DeviceName& client_device) {
  PlacedProblem placed;
  ASSIGN_OR_RETURN(placed.order, graph.TopologicalOrder());
  placed.index.assign(graph.max_id(), -1);
  AddDevices(devices, costs, client_device, &placed.problem);
  std::map<std::string, int> by_name;
  for (size_t d = 0; d < devices.size(); ++d) {
    by_name.emplace(devices[d].name.ToString(), static_cast<int>(d));
  }
  for (const Node* node : placed.order) {
    const auto device = by_name.find(node->assigned_device());
    CHECK(device != by_name.end(), "node ", node->name(), " on unknown device ",
          node->assigned_device());
    placed.device.push_back(device->second);
    placed.problem.candidates.push_back({device->second});
    const int number = placed.problem.num_nodes();
    placed.problem.AddNode(number, InputsOf(*node, placed),
                           {costs.NodeNanos(*node, devices[device->second])});
    placed.index[node->id()] = number;
    placed.first_output.push_back(static_cast<int>(placed.problem.output_bytes.size()));
    for (int i = 0; i < node->num_outputs(); ++i) {
      placed.problem.output_bytes.push_back(node->output_type(i).ref ? 0
                                                                     : costs.OutputBytes(*node, i));
    }
  }
  return placed;
}

std::vector<double> PeakBytes(const PlacedProblem& placed, const PredictedStep& step) {
  const PlacementProblem& problem = placed.problem;
  std::map<std::tuple<int, int>, Span> spans;  // by output and device
  for (const PredictedStep::Transfer& sent : step.transfers) {
    if (sent.output < 0) continue;
    const double bytes = problem.output_bytes[sent.output];
    spans[{sent.output, sent.to}] = {sent.start_ns, sent.end_ns, bytes};
    if (PassesOn(*placed.order[sent.node])) continue;
    Span& own = spans[{sent.output, sent.from}];
    own = {step.runs[sent.node].start_ns, std::max(own.end_ns, sent.end_ns), bytes};
  }
  for (int node = 0; node < problem.num_nodes(); ++node) {
    for (int i = problem.first_input[node]; i < problem.first_input[node + 1]; ++i) {
      const PlacementProblem::Input& in = problem.inputs[i];
      const bool passed_on = PassesOn(*placed.order[in.node]);
      const bool same_device = placed.device[in.node] == placed.device[node];
      if (in.output < 0 || (passed_on && same_device)) continue;
      Span& span = spans[{in.output, placed.device[node]}];
      span.end_ns = std::max(span.end_ns, step.runs[node].end_ns);
      if (!same_device) continue;
      span.begin_ns = step.runs[in.node].start_ns;
      span.bytes = problem.output_bytes[in.output];
    }
  }
  std::vector<std::vector<Span>> by_device(problem.devices.size());
  for (const auto& [key, span] : spans) by_device[std::get<1>(key)].push_back(span);
  std::vector<double> peaks;
  for (const std::vector<Span>& of_device : by_device) peaks.push_back(PeakOf(of_device));
  return peaks;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// A consumer cannot delay a transfer: the producer sends a value to the consumer's task as soon as
// the value is computed. So this pass delays a transfer by a control edge from a node of the
// consumer's task to the sending node. The edge costs a message. It is useful for values that would
// otherwise be in the consumer's memory long before their use, such as the weights of late layers.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/compiler/passes/estimates.h"
#include "core/compiler/passes/passes.h"
#include "core/compiler/placement/placed_problem.h"
#include "core/graph/loop_frames.h"

namespace penstock {
namespace {

constexpr double kBytesMin = 64 << 10;
// A delayed transfer begins early enough even if it takes kSafety times the predicted time plus
// kSafetyNanos.
constexpr double kSafety = 2, kSafetyNanos = 50'000;
// Delays must lower the predicted peak of some device's memory by the share kPeakShareMin and by
// kPeakBytesMin, and may lengthen the predicted step by at most the share kStepShareMax.
constexpr double kPeakShareMin = 0.1, kPeakBytesMin = 1 << 20, kStepShareMax = 0.01;
// The rounding error of sums: sums of the same bytes in another order differ by less than this
// share.
constexpr double kRounding = 1e-9;

bool SpansDevices(const Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
    return node->assigned_device() != nodes.front()->assigned_device();
  });
}

// Returns true if a node only makes or reads state; it neither changes state nor waits for a
// change.
bool OnlyMakesOrReadsState(const Node& node) {
  if (node.op().only_reads || node.op().end == EndOp::kFeed) return true;
  const bool makes_handle = node.num_outputs() > 0 && node.output_type(0).refers_to_state();
  return makes_handle && node.num_inputs() == 0;
}

class TransferSchedule {
 public:
  explicit TransferSchedule(PassContext* context) : context_(*context) {}

  Status Run() {
    ASSIGN_OR_RETURN(undelayed_, Describe(*context_.graph));
    const std::vector<double> ranks = UpwardRanks(undelayed_.problem);
    context_.urgency.assign(context_.graph->max_id(), 0);
    for (size_t i = 0; i < ranks.size(); ++i) {
      context_.urgency[undelayed_.order[i]->id()] = ranks[i];
    }
    if (context_.options.partial_run) return OkStatus();
    ASSIGN_OR_RETURN(const LoopFrames frames, FindLoopFrames(*context_.graph));
    if (frames.any()) return OkStatus();
    step_ = PredictStep(undelayed_.problem, undelayed_.device, ranks);
    FindCertainNodes();
    FindDelays();
    return delays_.empty() ? OkStatus() : ApplyDelaysIfUseful();
  }

 private:
  struct Delay {
    int node = 0, output = 0;  // the delayed value: a node of the problem, and its output
    int to = 0;                // the receiving device
    int after = 0;             // the node on `to` for which the transfer waits
  };

  StatusOr<PlacedProblem> Describe(const Graph& graph) {
    return DescribePlaced(graph, context_.devices, context_.costs, context_.options.client_device);
  }

  // Finds, by device and in order of their predicted ends, the nodes that run in every step and
  // cannot wait for events outside of the step.
  void FindCertainNodes() {
    certain_nodes_.resize(context_.devices.size());
    std::vector<bool> is_certain(undelayed_.order.size());
    for (size_t i = 0; i < undelayed_.order.size(); ++i) {
      const Node& node = *undelayed_.order[i];
      const auto is_certain_source = [&](const Node* source) {
        const int index = undelayed_.index[source->id()];
        return is_certain[index];
      };
      is_certain[i] = FlowOpOf(node) == FlowOp::kNone &&
                      (!node.op().stateful || OnlyMakesOrReadsState(node)) &&
                      std::all_of(node.inputs().begin(), node.inputs().end(),
                                  [&](const Endpoint& in) { return is_certain_source(in.node); }) &&
                      std::all_of(node.control_inputs().begin(), node.control_inputs().end(),
                                  is_certain_source);
      if (is_certain[i]) {
        certain_nodes_[undelayed_.device[i]].emplace_back(step_.runs[i].end_ns,
                                                          static_cast<int>(i));
      }
    }
    for (auto& nodes : certain_nodes_) std::sort(nodes.begin(), nodes.end());
  }

  void FindDelays() {
    const PlacementProblem& problem = undelayed_.problem;
    for (const PredictedStep::Transfer& sent : step_.transfers) {
      if (sent.output < 0 || problem.output_bytes[sent.output] < kBytesMin) continue;
      const Node& source = *undelayed_.order[sent.node];
      if (FlowOpOf(source) != FlowOp::kNone) continue;
      if (problem.devices[sent.from].task == problem.devices[sent.to].task) continue;
      const LinkRates link = problem.Link(sent.from, sent.to);
      const double transfer_ns =
          link.latency_ns + problem.output_bytes[sent.output] / link.bytes_per_ns;
      const double message = problem.Link(sent.to, sent.from).latency_ns;
      const double latest = NeededAt(sent) - kSafety * (transfer_ns + message) - kSafetyNanos;
      const int after = LastCertainBefore(sent.to, latest);
      if (after < 0 || step_.runs[after].end_ns <= sent.start_ns) continue;
      const int output = sent.output - undelayed_.first_output[sent.node];
      delays_.push_back({sent.node, output, sent.to, after});
    }
  }

  // Returns when the first node that reads the transferred tensor starts.
  double NeededAt(const PredictedStep::Transfer& sent) {
    if (first_reads_.empty()) {
      const PlacementProblem& problem = undelayed_.problem;
      for (int node = 0; node < problem.num_nodes(); ++node) {
        for (int i = problem.first_input[node]; i < problem.first_input[node + 1]; ++i) {
          const int output = problem.inputs[i].output;
          if (output < 0) continue;
          const double start = step_.runs[node].start_ns;
          const auto [first, is_new] =
              first_reads_.try_emplace(std::pair(output, undelayed_.device[node]), start);
          if (!is_new) first->second = std::min(first->second, start);
        }
      }
    }
    return first_reads_.at({sent.output, sent.to});
  }

  int LastCertainBefore(int device, double latest_ns) const {
    const auto& nodes = certain_nodes_[device];
    const auto end = std::lower_bound(nodes.begin(), nodes.end(), std::pair(latest_ns, 0));
    return end == nodes.begin() ? -1 : std::prev(end)->second;
  }

  // Returns a copy of the graph with the delays, and records the sizes of the added outputs in
  // `costs`. Like the edges of the graph, all added edges lead from nodes that are predicted to run
  // earlier to nodes that run later, so they make no cycle.
  StatusOr<Graph> WithDelays(CostTable* costs) const {
    Graph graph = context_.graph->Clone();
    for (const Delay& delay : delays_) {
      Node* const source = graph.node(undelayed_.order[delay.node]->id());
      Node* const after = graph.node(undelayed_.order[delay.after]->id());
      ASSIGN_OR_RETURN(Node * late,
                       graph.AddNode({.name = graph.UniqueName(StrCat("_late_", source->name())),
                                      .op = "Identity",
                                      .inputs = {{source, delay.output}},
                                      .control_inputs = {after},
                                      .attrs = {{"T", source->output_type(delay.output).dtype}},
                                      .device = source->assigned_device()}));
      graph.set_assigned_device(late, source->assigned_device());
      costs->RecordOutput(late->name(), 0, costs->OutputBytes(*source, delay.output));
      const std::string to = context_.devices[delay.to].name.ToString();
      const std::vector<OutEdge> edges = source->out_edges();  // a copy, because the edges change
      for (const OutEdge& edge : edges) {
        if (edge.src_index != delay.output || edge.dst->assigned_device() != to) continue;
        RETURN_IF_ERROR(graph.SetInput(edge.dst, edge.dst_index, {late, 0}));
      }
    }
    return graph;
  }

  Status ApplyDelaysIfUseful() {
    CostTable costs = context_.costs;
    ASSIGN_OR_RETURN(Graph graph, WithDelays(&costs));
    ASSIGN_OR_RETURN(const PlacedProblem late, DescribePlaced(graph, context_.devices, costs,
                                                              context_.options.client_device));
    const PredictedStep step = PredictStep(late.problem, late.device, UpwardRanks(late.problem));
    if (step.end_ns > (1 + kStepShareMax) * step_.end_ns) return OkStatus();
    const std::vector<double> before = PeakBytes(undelayed_, step_), after = PeakBytes(late, step);
    bool lowers_peak = false;
    for (size_t d = 0; d < before.size(); ++d) {
      if (after[d] > (1 + kRounding) * before[d]) return OkStatus();
      const double saved = before[d] - after[d];
      lowers_peak |= saved >= kPeakBytesMin && saved >= kPeakShareMin * before[d];
    }
    if (!lowers_peak) return OkStatus();
    *context_.graph = std::move(graph);
    context_.costs = std::move(costs);
    context_.urgency.resize(context_.graph->max_id(), 0);
    return OkStatus();
  }

  PassContext& context_;
  PlacedProblem undelayed_;
  PredictedStep step_;  // the predicted step without delays
  std::vector<std::vector<std::pair<double, int>>> certain_nodes_;  // by device: end, node
  std::map<std::pair<int, int>, double> first_reads_;  // by output and device: the first start
  std::vector<Delay> delays_;
};

}  // namespace

Status ScheduleTransfers(PassContext& context) {
  if (!SpansDevices(*context.graph)) return OkStatus();
  // Passes after "place" may have added nodes, which have no estimates.
  if (context.graph->max_id() > context.costs.num_estimated()) {
    RETURN_IF_ERROR(EstimateCosts(context));
  }
  return TransferSchedule(&context).Run();
}

}  // namespace penstock

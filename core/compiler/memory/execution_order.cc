// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/execution_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/compiler/memory/memory_simulation.h"
#include "core/op/device_name.h"

namespace penstock {
namespace {

// Equal to the constant in core/runtime/executable.cc.
constexpr double kExpensiveNanos = 4'000;

// Counts, for each node, the data and control inputs whose nodes have not run yet.
class PendingInputs {
 public:
  explicit PendingInputs(const Graph& graph) : left_(graph.max_id()) {
    for (const Node* node : graph.nodes()) {
      int& left = left_[node->id()];
      left = static_cast<int>(node->control_inputs().size());
      for (const Endpoint& in : node->inputs()) {
        left += in.node != nullptr && !IsBackEdge(in.node, node);
      }
    }
  }
  bool IsReady(const Node& node) const { return left_[node.id()] == 0; }
  // Records that `node` has run. Calls ready(next) for each node that waited only for `node`, in
  // the order of the executor's edges.
  template <class Ready>
  void End(const Node& node, const std::vector<int>& rank, Ready ready) {
    std::vector<OutEdge> edges = node.out_edges();
    std::sort(edges.begin(), edges.end(), [&](const OutEdge& a, const OutEdge& b) {
      return std::tuple(a.src_index, rank[a.dst->id()], a.dst_index) <
             std::tuple(b.src_index, rank[b.dst->id()], b.dst_index);
    });
    for (const OutEdge& edge : edges) {
      if (!IsBackEdge(&node, edge.dst) && --left_[edge.dst->id()] == 0) ready(edge.dst);
    }
    for (Node* next : node.control_outputs()) {
      if (--left_[next->id()] == 0) ready(next);
    }
  }

 private:
  static bool IsBackEdge(const Node* src, const Node* dst) { return IsLoopBackEdge(*src, *dst); }

  std::vector<int> left_;  // by node id: how many inputs have not run
};

Node* TakeLast(std::vector<Node*>* nodes) {
  Node* const last = nodes->back();
  nodes->pop_back();
  return last;
}

// How a greedy order chooses among the ready nodes.
enum class GreedyRule {
  kFreesFirst,   // a node that frees memory, else the first in the known order
  kLeastMemory,  // the node that takes the least memory
};

std::vector<Node*> GreedyOrder(const MemoryModel& model, const Graph& graph,
                               const std::vector<Node*>& known, const std::vector<bool>& ordered,
                               GreedyRule greed) {
  std::vector<int> rank(graph.max_id());
  for (size_t i = 0; i < known.size(); ++i) rank[known[i]->id()] = static_cast<int>(i);
  PendingInputs pending(graph);
  std::vector<Node*> ready, order;
  for (Node* node : known) {
    if (pending.IsReady(*node)) ready.push_back(node);
  }
  MemorySimulation memory(model, {});
  while (!ready.empty()) {
    const auto cost = [&](const Node* node) {
      if (!ordered[model.DeviceOf(*node)]) return std::tuple(-1, 0.0, rank[node->id()]);
      const double change = memory.ChangeInBytes(*node);
      const bool by_rank = greed == GreedyRule::kFreesFirst && change > 0;
      return std::tuple(change > 0 ? 1 : 0, by_rank ? 0.0 : change, rank[node->id()]);
    };
    auto best = ready.begin();
    auto least = cost(*best);
    for (auto it = best + 1; it != ready.end(); ++it) {
      if (auto value = cost(*it); value < least) std::tie(best, least) = std::pair(it, value);
    }
    Node* const node = *best;
    ready.erase(best);
    memory.RunNode(*node);
    order.push_back(node);
    pending.End(*node, rank, [&](Node* next) { ready.push_back(next); });
  }
  return order;
}

// Sorts nodes without inputs into the order in which the executor starts them.
void SortByUrgency(const std::vector<double>& urgency, std::vector<Node*>* roots) {
  const auto of = [&](const Node* node) {
    const auto id = static_cast<size_t>(node->id());
    return id < urgency.size() ? urgency[id] : 0;
  };
  std::stable_sort(roots->begin(), roots->end(),
                   [&](const Node* a, const Node* b) { return of(a) > of(b); });
}

double PeakOf(const MemoryProfile& profile) {
  double peak = 0;
  for (const auto& device : profile.devices) peak = std::max(peak, device.peak_bytes);
  return peak;
}

}  // namespace

StatusOr<std::vector<Node*>> ExecutorOrder(const Graph& graph, const CostTable& costs,
                                           const std::string& client_task,
                                           const std::vector<double>& urgency) {
  ASSIGN_OR_RETURN(const std::vector<Node*> topological, graph.TopologicalOrder());
  std::vector<int> rank(graph.max_id());
  std::vector<bool> expensive(graph.max_id());
  for (size_t i = 0; i < topological.size(); ++i) {
    const Node& node = *topological[i];
    rank[node.id()] = static_cast<int>(i);
    ASSIGN_OR_RETURN(DeviceName device, DeviceName::Parse(node.assigned_device()));
    const DeviceRates rates = DefaultRates(device.type.value_or("CPU"));
    expensive[node.id()] =
        costs.NodeNanos(node, {.name = std::move(device), .rates = rates}) > kExpensiveNanos;
  }
  PendingInputs pending(graph);
  std::vector<Node*> roots, other_tasks, cheap, costly, order;
  const auto add = [&](Node* node) {
    const bool on_client_task = node->assigned_device().starts_with(client_task);
    (!on_client_task ? other_tasks : expensive[node->id()] ? costly : cheap).push_back(node);
  };
  for (Node* node : topological) {
    if (pending.IsReady(*node)) roots.push_back(node);
  }
  SortByUrgency(urgency, &roots);
  std::for_each(roots.rbegin(), roots.rend(), add);
  while (!other_tasks.empty() || !cheap.empty() || !costly.empty()) {
    Node* const node = TakeLast(!other_tasks.empty() ? &other_tasks
                                : !cheap.empty()     ? &cheap
                                                     : &costly);
    order.push_back(node);
    pending.End(*node, rank, add);
  }
  return order;
}

std::vector<Node*> LowPeakOrder(const MemoryModel& model, const Graph& graph,
                                const std::vector<Node*>& known, const std::vector<bool>& ordered,
                                double limit) {
  std::vector<Node*> best = known;
  const auto cost_of = [&](const std::vector<Node*>& order) {
    const MemoryProfile profile = model.Profile(order);
    return std::pair(profile.Excess(limit), PeakOf(profile));
  };
  auto least = cost_of(best);
  for (const GreedyRule greed : {GreedyRule::kFreesFirst, GreedyRule::kLeastMemory}) {
    std::vector<Node*> order = GreedyOrder(model, graph, known, ordered, greed);
    if (auto value = cost_of(order); value < least) std::tie(best, least) = std::pair(order, value);
  }
  return best;
}

}  // namespace penstock

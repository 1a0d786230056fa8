// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/compiler/passes/colocation_targets.h"
#include "core/compiler/passes/passes.h"
#include "core/op/private_attrs.h"
#include "core/op/resource.h"

namespace penstock {
namespace {

// Returns true if the op passes a handle on unchanged.
bool PassesOn(const OpDef& op) {
  return op.passes_through || op.flow == FlowOp::kSwitch || op.flow == FlowOp::kEnter;
}

// If a handle passes through more nodes than this, its resource counts as unknown.
constexpr int kHandleHopsMax = 100;

// Identifies the resource of a handle: its container, and its name in the container.
using StateName = std::pair<std::string, std::string>;

// Returns nullopt if the handle cannot be traced: it is fed, merged, or made by a function.
std::optional<StateName> StateBehind(Endpoint handle) {
  const Node* maker = handle.node;
  for (int hops = 0; maker->num_inputs() > 0; ++hops) {
    if (hops == kHandleHopsMax || !PassesOn(maker->op())) return std::nullopt;
    maker = maker->input(0).node;
  }
  const auto* container = maker->attr<std::string>("container");
  const auto* shared = maker->attr<std::string>("shared_name");
  if (container == nullptr || shared == nullptr) return std::nullopt;
  return StateName(container->empty() ? kDefaultContainer : *container,
                   shared->empty() ? maker->name() : *shared);
}

bool MayUpdate(const Node& node, const std::optional<StateName>& variable) {
  const OpDef& op = node.op();
  if (op.only_reads || op.passes_through || op.flow != FlowOp::kNone) return false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!node.input_type(i).refers_to_state()) continue;
    const std::optional<StateName> other = StateBehind(node.input(i));
    if (!other || !variable || *other == *variable) return true;
  }
  return false;
}

// Finds the nodes that run before a node. Limits the total number of nodes visited by all calls,
// because the pass must not take quadratic time for an untrusted graph with a million lookups after
// a million nodes.
class Ancestors {
 public:
  explicit Ancestors(const Graph& graph)
      : steps_left_(kWalksPerNode * graph.max_id() + 1'000'000), seen_(graph.max_id(), 0) {}

  // Returns `start` and its ancestors; nullopt if the limit of all walks is reached.
  std::optional<std::vector<const Node*>> Of(const Node* start) {
    ++walk_;
    std::vector<const Node*> found;
    Reach(start, &found);
    for (size_t next = 0; next < found.size(); ++next) {
      steps_left_ -= 1 + found[next]->num_inputs() +
                     static_cast<int64_t>(found[next]->control_inputs().size());
      if (steps_left_ < 0) return std::nullopt;
      for (const Endpoint& input : found[next]->inputs()) Reach(input.node, &found);
      for (const Node* control : found[next]->control_inputs()) Reach(control, &found);
    }
    return found;
  }

 private:
  static constexpr int64_t kWalksPerNode = 100;
  void Reach(const Node* node, std::vector<const Node*>* found) {
    if (std::exchange(seen_[node->id()], walk_) != walk_) found->push_back(node);
  }

  int64_t steps_left_;
  int walk_ = 0;
  std::vector<int> seen_;  // by node id: the last walk that visited it
};

// A Gather, and the path of its table from the Gather backwards: Identities, then the node that
// reads the variable.
struct Lookup {
  Node* gather;
  std::vector<Node*> path;
  Node* read() const { return path.back(); }
};

// Returns whether the node takes rows of a tensor. Compares names of ops, because the pass replaces
// exactly these two ops by ResourceGather, whose arguments are the same except for the axis.
bool TakesRows(const Node& gather) {
  if (gather.op_name() == "Gather") return true;
  if (gather.op_name() != "GatherV2" || *gather.attr<int64_t>("batch_dims") != 0) return false;
  const Node& axis = *gather.input(2).node;
  const Tensor* value = axis.op().is_constant ? axis.attr<Tensor>("value") : nullptr;
  if (value == nullptr || value->num_elements() != 1) return false;
  return value->dtype() == DType::kInt64 ? value->flat<int64_t>()[0] == 0
                                         : value->flat<int32_t>()[0] == 0;
}

// Returns the Gather with its path if it can be replaced, else nullopt. `beside` has the names of
// nodes that other nodes name in their colocation attributes.
std::optional<Lookup> FindLookup(Node* gather, const absl::flat_hash_set<std::string>& beside) {
  if (!TakesRows(*gather) || beside.contains(gather->name())) return std::nullopt;
  Lookup lookup{.gather = gather};
  for (Node* node = gather->input(0).node;; node = node->input(0).node) {
    const bool has_one_consumer = node->out_edges().size() == 1 && node->control_outputs().empty();
    if (!has_one_consumer || beside.contains(node->name())) return std::nullopt;
    lookup.path.push_back(node);
    if (node->op().reads_variable) break;
    if (!node->op().passes_through) return std::nullopt;
  }
  const auto* group = gather->attr<std::vector<std::string>>(kColocationAttr);
  const auto* reads = lookup.read()->attr<std::vector<std::string>>(kColocationAttr);
  const bool colocated_elsewhere = group != nullptr && (reads == nullptr || *reads != *group);
  return colocated_elsewhere ? std::nullopt : std::optional(lookup);
}

// Returns the nodes whose control inputs the new node must take over. The axis is among them: it
// has control inputs only if it is on a branch or in a loop.
std::vector<Node*> ReplacedNodes(const Lookup& lookup) {
  std::vector<Node*> nodes = lookup.path;
  nodes.push_back(lookup.gather);
  if (lookup.gather->num_inputs() > 2) nodes.push_back(lookup.gather->input(2).node);
  return nodes;
}

// Returns true if an update of the variable runs before the Gather but need not run before the
// read, or if the graph is too large to tell.
bool MayMissUpdate(const Lookup& lookup, Ancestors* ancestors) {
  const std::optional<StateName> variable = StateBehind(lookup.read()->input(0));
  const auto before_gather = ancestors->Of(lookup.gather);
  if (!before_gather) return true;
  std::vector<const Node*> updates;
  for (const Node* node : *before_gather) {
    if (MayUpdate(*node, variable)) updates.push_back(node);
  }
  if (updates.empty()) return false;
  const auto before_read = ancestors->Of(lookup.read());
  if (!before_read) return true;
  const absl::flat_hash_set<const Node*> ordered(before_read->begin(), before_read->end());
  return !std::all_of(updates.begin(), updates.end(),
                      [&](const Node* update) { return ordered.contains(update); });
}

Status Rewrite(const Lookup& lookup, Graph* graph) {
  Node *const gather = lookup.gather, *const read = lookup.read();
  Node* const axis = gather->num_inputs() > 2 ? gather->input(2).node : nullptr;
  Graph::NodeSpec spec{
      .name = gather->name(),
      .op = "ResourceGather",
      .inputs = {read->input(0), gather->input(1)},
      .attrs = {{"dtype", gather->output_type(0).dtype}, {"Tindices", gather->input_type(1).dtype}},
      .device = read->requested_device()};
  if (const AttrValue* group = read->FindAttr(kColocationAttr)) {
    spec.attrs[kColocationAttr] = *group;
  }
  std::vector<Node*> earlier;
  for (const Node* node : ReplacedNodes(lookup)) {
    earlier.insert(earlier.end(), node->control_inputs().begin(), node->control_inputs().end());
  }
  const std::vector<OutEdge> uses = gather->out_edges();
  const std::vector<Node*> later = gather->control_outputs();
  for (const OutEdge& use : uses) RETURN_IF_ERROR(graph->SetInput(use.dst, use.dst_index, {}));
  graph->RemoveNode(gather);
  for (Node* node : lookup.path) graph->RemoveNode(node);
  ASSIGN_OR_RETURN(Node * rows, graph->AddNode(std::move(spec)));
  for (const OutEdge& use : uses) {
    RETURN_IF_ERROR(graph->SetInput(use.dst, use.dst_index, {rows, 0}));
  }
  for (Node* node : earlier) graph->AddControlEdge(node, rows);
  for (Node* node : later) graph->AddControlEdge(rows, node);
  if (axis != nullptr && axis->out_edges().empty() && axis->control_outputs().empty()) {
    graph->RemoveNode(axis);
  }
  return OkStatus();
}

}  // namespace

Status GatherFromVariables(PassContext& context) {
  Graph* const graph = context.graph;
  const absl::flat_hash_set<std::string> beside = ColocationTargets(*graph);
  std::vector<Lookup> lookups;
  for (Node* node : graph->nodes()) {
    if (std::optional<Lookup> lookup = FindLookup(node, beside)) lookups.push_back(*lookup);
  }
  Ancestors ancestors(*graph);
  std::erase_if(lookups, [&](const Lookup& l) { return MayMissUpdate(l, &ancestors); });
  for (const Lookup& lookup : lookups) RETURN_IF_ERROR(Rewrite(lookup, graph));
  return OkStatus();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"

namespace penstock {
namespace {

bool MayMerge(const Node& node) {
  if (node.op().stateful || node.op().internal()) return false;
  // Placeholders have no inputs but are different: clients feed them by name.
  if (node.num_inputs() == 0 && !node.op().is_constant) return false;
  if (FlowOpOf(node) != FlowOp::kNone) return false;
  const auto is_ref = [](const EdgeType& type) { return type.ref; };
  return std::none_of(node.input_types().begin(), node.input_types().end(), is_ref) &&
         std::none_of(node.output_types().begin(), node.output_types().end(), is_ref);
}

std::vector<int> ControlIds(const Node& node) {
  std::vector<int> ids;
  for (const Node* control : node.control_inputs()) ids.push_back(control->id());
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::pair<int, int>> InputIds(const Node& node) {
  std::vector<std::pair<int, int>> ids;
  for (const Endpoint& in : node.inputs()) ids.emplace_back(in.node->id(), in.index);
  if (node.op().commutative) std::sort(ids.begin(), ids.end());
  return ids;
}

size_t HashOf(const Node& node) {
  size_t hash = absl::HashOf(node.op_name(), InputIds(node), ControlIds(node),
                             node.requested_device(), node.attrs().size());
  const Tensor* value = node.attr<Tensor>("value");
  if (value != nullptr && IsPlain(value->dtype())) {
    const size_t sample = std::min<size_t>(value->bytes(), 64);
    hash = absl::HashOf(hash, Number(value->dtype()), value->num_elements(),
                        absl::string_view(static_cast<const char*>(value->raw_data()), sample));
  }
  return hash;
}

// Many different nodes may have equal hashes, such as string constants. Comparing each node with a
// bounded number of others keeps the pass linear.
constexpr size_t kSameHashMax = 64;

bool Same(const Node& a, const Node& b) {
  return a.op_name() == b.op_name() && a.requested_device() == b.requested_device() &&
         InputIds(a) == InputIds(b) && ControlIds(a) == ControlIds(b) && a.attrs() == b.attrs();
}

}  // namespace

Status EliminateCommonSubexpressions(PassContext& context) {
  Graph* const graph = context.graph;
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  const absl::flat_hash_set<string_view> targets(context.options.targets.begin(),
                                                 context.options.targets.end());
  absl::flat_hash_map<size_t, std::vector<Node*>> seen;
  for (Node* node : order) {
    if (!MayMerge(*node)) continue;
    std::vector<Node*>& same_hash = seen[HashOf(*node)];
    const auto original = std::find_if(same_hash.begin(), same_hash.end(),
                                       [&](Node* other) { return Same(*node, *other); });
    if (original == same_hash.end()) {
      if (same_hash.size() < kSameHashMax) same_hash.push_back(node);
      continue;
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      RETURN_IF_ERROR(graph->ReplaceUses({node, i}, {*original, i}));
    }
    for (Node* after : std::vector<Node*>(node->control_outputs())) {
      graph->AddControlEdge(*original, after);
      graph->RemoveControlEdge(node, after);
    }
    // Remove the duplicate here, because RemoveDeadNodes would keep one that reads a reference.
    if (!targets.contains(node->name())) graph->RemoveNode(node);
  }
  return OkStatus();
}

}  // namespace penstock

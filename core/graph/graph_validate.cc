// SPDX-License-Identifier: Apache-2.0
//
// Finds a topological order of a graph, and checks its invariants.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/error_origin.h"
#include "core/graph/graph.h"

namespace penstock {

namespace {

constexpr int kCycleNodesShown = 20;

// Calls fn(consumer) once per edge from `node`, except loop back edges.
template <class Fn>
void ForEachForwardEdge(const Node& node, Fn fn) {
  for (const OutEdge& edge : node.out_edges()) {
    if (!IsLoopBackEdge(node, *edge.dst)) fn(edge.dst);
  }
  for (Node* dst : node.control_outputs()) fn(dst);
}

// Returns the number of edges into `node`, except loop back edges. Reads other nodes only for
// Merges, because in a large graph each read costs a cache miss.
int ForwardEdgesInto(const Node& node) {
  int count = static_cast<int>(node.control_inputs().size());
  const bool merge = node.op().flow == FlowOp::kMerge;
  for (const Endpoint& input : node.inputs()) {
    if (input.node != nullptr && !(merge && IsLoopBackEdge(*input.node, node))) ++count;
  }
  return count;
}

// Returns a node from which an edge leads to `node` and which is not ordered either.
const Node* UnorderedInput(const Node& node, const std::vector<int>& pending) {
  for (const Endpoint& input : node.inputs()) {
    if (input.node == nullptr || IsLoopBackEdge(*input.node, node)) continue;
    if (pending[input.node->id()] > 0) return input.node;
  }
  for (const Node* input : node.control_inputs()) {
    if (pending[input->id()] > 0) return input;
  }
  CHECK(false, "node '", node.name(), "' waits for nothing");
}

// Returns an error that names the nodes of a cycle. Finds it by walking backwards through unordered
// nodes until it meets a node again.
Status CycleError(const Graph& graph, const std::vector<int>& pending) {
  int start = 0;
  while (pending[start] <= 0) ++start;
  std::vector<int> seen(pending.size(), -1);  // index in `path`
  std::vector<const Node*> path;
  const Node* node = graph.node(start);
  while (seen[node->id()] < 0) {
    seen[node->id()] = static_cast<int>(path.size());
    path.push_back(node);
    node = UnorderedInput(*node, pending);
  }
  path.erase(path.begin(), path.begin() + seen[node->id()]);
  std::reverse(path.begin(), path.end());
  std::rotate(path.begin(),
              std::min_element(path.begin(), path.end(),
                               [](const Node* a, const Node* b) { return a->id() < b->id(); }),
              path.end());
  const std::string rest = path.size() > kCycleNodesShown ? " -> ..." : "";
  const size_t shown = std::min<size_t>(path.size(), kCycleNodesShown);
  return InvalidArgument(
      "the graph has a cycle of ", path.size(), " nodes: ",
      absl::StrJoin(path.begin(), path.begin() + shown, " -> ",
                    [](std::string* out, const Node* n) { StrAppend(out, "'", n->name(), "'"); }),
      rest, rest.empty() ? StrCat(" -> '", path.front()->name(), "'") : "");
}

}  // namespace

bool IsLoopBackEdge(const Node& src, const Node& dst) {
  return src.op().flow == FlowOp::kNextIteration && dst.op().flow == FlowOp::kMerge;
}

StatusOr<std::vector<Node*>> Graph::TopologicalOrder() const {
  std::vector<int> pending(nodes_.size(), 0);
  std::vector<Node*> order;  // the search visits the nodes in this order
  order.reserve(num_nodes_);
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    const int count = ForwardEdgesInto(*node);
    pending[node->id()] = count;
    if (count == 0) order.push_back(node.get());
  }
  for (size_t next = 0; next < order.size(); ++next) {
    ForEachForwardEdge(*order[next], [&](Node* dst) {
      if (--pending[dst->id()] == 0) order.push_back(dst);
    });
  }
  if (static_cast<int>(order.size()) < num_nodes_) return CycleError(*this, pending);
  return order;
}

Status Graph::ValidateNode(const Node& node) const {
  const auto at_node = [&node](const Status& status) { return InNode(status, node.name_); };
  if (!node.attrs_checked_) {
    Attrs attrs = node.attrs_;
    RETURN_IF_ERROR(at_node(CompleteAttrs(*node.op_, &attrs)));
    std::vector<EdgeType> inputs, outputs;
    for (const ArgDef& arg : node.op_->inputs) {
      RETURN_IF_ERROR(at_node(AppendArgTypes(arg, attrs, &inputs)));
    }
    for (const ArgDef& arg : node.op_->outputs) {
      RETURN_IF_ERROR(at_node(AppendArgTypes(arg, attrs, &outputs)));
    }
    if (inputs != node.input_types_ || outputs != node.output_types_) {
      return at_node(Internal("its attributes were changed to say other types than its edges"));
    }
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint& source = node.inputs_[i];
    if (source.node == nullptr) {
      return at_node(InvalidArgument("input ", i, " is not connected"));
    }
    RETURN_IF_ERROR(CheckInput(node, i, source));
    const std::vector<OutEdge>& edges = source.node->out_edges_;
    const size_t slot = node.out_slots_[i];
    if (slot >= edges.size() || edges[slot].dst != &node || edges[slot].dst_index != i ||
        edges[slot].src_index != source.index) {
      return at_node(Internal("the two ends of input ", i, " disagree"));
    }
  }
  return OkStatus();
}

Status Graph::Validate() const {
  // AddNode has added each node under its name, which never changes.
  if (by_name_.size() != static_cast<size_t>(num_nodes_)) {
    return Internal("the graph has ", num_nodes_, " nodes and ", by_name_.size(), " names");
  }
  for (const auto& node : nodes_) {
    if (node != nullptr) RETURN_IF_ERROR(ValidateNode(*node));
  }
  return TopologicalOrder().status();
}

}  // namespace penstock

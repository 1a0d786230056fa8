// SPDX-License-Identifier: Apache-2.0
//
// In TensorFlow the value behind a reference edge shares the variable's memory, so a node that runs
// after an update sees what the update left, even by way of an Identity that ran before it.
// Programs rely on that: SyncReplicasOptimizer puts the global step into its token queue after the
// update, through a read that nothing orders. A snapshot taken by that Identity would be the old
// value.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"

namespace penstock {
namespace {

bool MakesReference(const Node* node) {
  return node->num_outputs() > 0 && node->output_type(0).ref;
}
bool TakesReference(const Node& node) { return node.num_inputs() > 0 && node.input_type(0).ref; }

// Of nodes that are given references.
bool OnlyPassesOn(const Node& node) {
  return FlowOpOf(node) != FlowOp::kNone || node.op().only_reads;
}

class LateReads {
 public:
  explicit LateReads(Graph* graph) : graph_(*graph) {}

  Status Run() {
    RETURN_IF_ERROR(FindViewsAndUpdates());
    if (views_.empty() || updates_.empty()) return OkStatus();
    std::vector<const Node*> all;
    for (const auto& [variable, updates] : updates_) {
      all.insert(all.end(), updates.begin(), updates.end());
    }
    const std::vector<bool> after_any = After(all);
    for (const auto& [variable, views] : views_) {
      const std::vector<Use> uses = Uses(views, after_any);
      const auto updates = updates_.find(variable);
      if (uses.empty() || updates == updates_.end()) continue;
      for (const Node* update : updates->second) RETURN_IF_ERROR(ReadAfter(*update, uses));
    }
    return OkStatus();
  }

 private:
  // An input that takes the value of a variable from a view.
  struct Use {
    Node* view;
    OutEdge edge;
  };

  // A view passes the value of a variable on, as its memory.
  Status FindViewsAndUpdates() {
    const std::vector<Node*> nodes = graph_.nodes();
    if (std::none_of(nodes.begin(), nodes.end(), MakesReference)) return OkStatus();
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    variable_of_.resize(graph_.max_id());
    for (Node* node : order) {
      if (MakesReference(node)) {
        variable_of_[node->id()] = TakesReference(*node) ? ReferredTo(*node) : node;
      } else if (node->num_inputs() > 0 && !node->op().ref_form.empty()) {
        const Endpoint in = node->input(0);
        const Node* const variable = variable_of_[in.node->id()];
        if (variable == nullptr || node->assigned_device() != variable->assigned_device()) continue;
        // Beside a reference RefMerge gives the number of the input that it was.
        if (MakesReference(in.node) && !in.node->output_type(in.index).ref) continue;
        variable_of_[node->id()] = variable;
        views_[variable->id()].push_back(node);
        continue;
      }
      for (int i = 0; i < node->num_inputs(); ++i) {
        if (!node->input_type(i).ref || OnlyPassesOn(*node)) continue;
        const Node* const variable = variable_of_[node->input(i).node->id()];
        if (variable != nullptr) updates_[variable->id()].push_back(node);
      }
    }
    return OkStatus();
  }

  // What made the variable's handle that `node` passes on. Of a Merge, the first that is known:
  // what comes around a loop is not, yet.
  const Node* ReferredTo(const Node& node) const {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Node* const variable = variable_of_[node.input(i).node->id()];
      if (node.input_type(i).ref && variable != nullptr) return variable;
    }
    return nullptr;
  }

  // By node: whether it comes after one of `nodes`.
  std::vector<bool> After(std::vector<const Node*> nodes) const {
    std::vector<bool> after(graph_.max_id());
    const auto reach = [&](const Node* node) {
      if (!after[node->id()]) nodes.push_back(node);
      after[node->id()] = true;
    };
    while (!nodes.empty()) {
      const Node* const node = nodes.back();
      nodes.pop_back();
      for (const OutEdge& edge : node->out_edges()) reach(edge.dst);
      for (const Node* next : node->control_outputs()) reach(next);
    }
    return after;
  }

  static std::vector<Use> Uses(const std::vector<Node*>& views, const std::vector<bool>& after) {
    std::vector<Use> uses;
    for (Node* view : views) {
      for (const OutEdge& edge : view->out_edges()) {
        const bool here = edge.dst->assigned_device() == view->assigned_device();
        // What a loop begins with comes before all that the loop does.
        const bool begins =
            FlowOpOf(*view) == FlowOp::kEnter && FlowOpOf(*edge.dst) == FlowOp::kMerge;
        if (here && !begins && after[edge.dst->id()]) uses.push_back({view, edge});
      }
    }
    return uses;
  }

  Status ReadAfter(const Node& update, const std::vector<Use>& uses) {
    const std::vector<bool> after = After({&update});
    for (const auto& [view, edge] : uses) {
      if (!after[edge.dst->id()] || after[view->id()]) continue;
      ASSIGN_OR_RETURN(Node * reference, ReferenceTo(view));
      RETURN_IF_ERROR(graph_.SetInput(edge.dst, edge.dst_index, {reference, edge.src_index}));
    }
    return OkStatus();
  }

  // What passes the reference on where and when `view` passes the value on.
  StatusOr<Node*> ReferenceTo(const Node* view) {
    if (const auto known = references_.find(view->id()); known != references_.end()) {
      return known->second;
    }
    std::vector<Endpoint> inputs = view->inputs();
    if (!inputs[0].node->output_type(inputs[0].index).ref) {
      ASSIGN_OR_RETURN(inputs[0].node, ReferenceTo(inputs[0].node));
    }
    Attrs attrs = view->attrs();
    attrs.erase("message");  // of PreventGradient
    ASSIGN_OR_RETURN(Node * reference, graph_.AddNode({.name = graph_.UniqueName(view->name()),
                                                       .op = view->op().ref_form,
                                                       .inputs = std::move(inputs),
                                                       .control_inputs = view->control_inputs(),
                                                       .attrs = std::move(attrs),
                                                       .device = view->requested_device()}));
    graph_.set_assigned_device(reference, view->assigned_device());
    return references_[view->id()] = reference;
  }

  Graph& graph_;
  // By the id of what passes it on, as a reference or as a view. Null: of others.
  std::vector<const Node*> variable_of_;
  std::map<int, std::vector<Node*>> views_;          // by variable
  std::map<int, std::vector<const Node*>> updates_;  // by variable
  std::map<int, Node*> references_;                  // by view
};

}  // namespace

Status ReadVariablesLate(PassContext& context) { return LateReads(context.graph).Run(); }

}  // namespace penstock

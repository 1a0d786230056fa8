// SPDX-License-Identifier: Apache-2.0
//
// Makes some reads of variables late, as TensorFlow does. In TensorFlow, the value of a ref edge
// shares the variable's memory. So a node that runs after an update sees the new value, even
// through an Identity that ran before the update. Programs rely on that: SyncReplicasOptimizer
// enqueues the global step after the update, but reads it through an Identity without control
// edges. With a snapshot in this Identity, it would enqueue the old value.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"
#include "core/graph/reachability.h"

namespace penstock {
namespace {

bool MakesReference(const Node* node) {
  return node->num_outputs() > 0 && node->output_type(0).ref;
}
bool TakesReference(const Node& node) { return node.num_inputs() > 0 && node.input_type(0).ref; }

// Returns whether a node passes its reference input on unchanged.
bool OnlyPassesOn(const Node& node) {
  return FlowOpOf(node) != FlowOp::kNone || node.op().only_reads;
}

class LateReads {
 public:
  explicit LateReads(Graph* graph) : graph_(*graph) {}

  Status Run() {
    RETURN_IF_ERROR(FindViewsAndUpdates());
    FindUses();
    if (uses_.empty()) return OkStatus();
    FindLateUses();
    for (const auto& [variable, uses] : uses_) {
      for (const Use& use : uses) {
        if (use.late) RETURN_IF_ERROR(ReadLate(use));
      }
    }
    return OkStatus();
  }

 private:
  // An input that reads the value of a variable through a view.
  struct Use {
    Node* view;
    OutEdge edge;
    bool late = false;  // true if the input's node runs after an update, and the view need not
  };
  struct Update {
    int variable;
    const Node* node;
  };

  // Finds the updates, and the views: nodes that pass a variable's value on by sharing its memory.
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
        // RefMerge's second output is the index of the input that it took, not a reference.
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

  // Returns the node that made the handle of the variable that `node` passes on. For a Merge, takes
  // the first input whose variable is known, because that of a loop-carried value is not known yet.
  const Node* ReferredTo(const Node& node) const {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Node* const variable = variable_of_[node.input(i).node->id()];
      if (node.input_type(i).ref && variable != nullptr) return variable;
    }
    return nullptr;
  }

  // Finds the uses that may have to read late: those on the device of their view, of variables that
  // the step updates.
  void FindUses() {
    for (const auto& [variable, views] : views_) {
      if (!updates_.contains(variable)) continue;
      for (Node* view : views) {
        for (const OutEdge& edge : view->out_edges()) {
          const bool same_device = edge.dst->assigned_device() == view->assigned_device();
          // The initial values of a loop are read before any node of the loop runs.
          const bool begins =
              FlowOpOf(*view) == FlowOp::kEnter && FlowOpOf(*edge.dst) == FlowOp::kMerge;
          if (same_device && !begins) uses_[variable].push_back({view, edge});
        }
      }
    }
  }

  // Marks each use that runs after an update if its view need not run after that update. Walks the
  // graph once for each batch of as many updates as Reachability can handle. The updates of a batch
  // are close together in the topological order, so a walk need not start at the order's beginning.
  void FindLateUses() {
    Reachability after(graph_, [](const Node& node, int input) { return node.input(input).node; });
    std::vector<Update> updates;
    for (const auto& [variable, uses] : uses_) {
      for (const Node* node : updates_[variable]) updates.push_back({variable, node});
    }
    std::stable_sort(updates.begin(), updates.end(), [&](const Update& a, const Update& b) {
      return after.Order(*a.node) < after.Order(*b.node);
    });
    for (size_t begin = 0; begin < updates.size(); begin += Reachability::kSourcesMax) {
      const size_t count = std::min(updates.size() - begin, Reachability::kSourcesMax);
      MarkLateUses({&updates[begin], count}, &after);
    }
  }

  void MarkLateUses(absl::Span<const Update> updates, Reachability* after) {
    std::vector<Reachability::Seed> seeds;
    std::map<int, Reachability::Sources> of_variable;
    for (size_t i = 0; i < updates.size(); ++i) {
      for (const OutEdge& edge : updates[i].node->out_edges()) seeds.push_back({edge.dst, i});
      for (const Node* next : updates[i].node->control_outputs()) seeds.push_back({next, i});
      of_variable[updates[i].variable].set(i);
    }
    after->Find(seeds);
    for (const auto& [variable, its] : of_variable) {
      for (Use& use : uses_[variable]) {
        const auto& before_use = after->Of(*use.edge.dst);
        const auto& before_view = after->Of(*use.view);
        use.late = use.late || (before_use & its & ~before_view).any();
      }
    }
  }

  Status ReadLate(const Use& use) {
    ASSIGN_OR_RETURN(Node * reference, ReferenceTo(use.view));
    return graph_.SetInput(use.edge.dst, use.edge.dst_index, {reference, use.edge.src_index});
  }

  // Returns a node that passes the reference on under the same conditions under which `view` passes
  // the value on. Adds this node, and the nodes before it, if they do not exist yet.
  StatusOr<Node*> ReferenceTo(const Node* view) {
    if (const auto known = references_.find(view->id()); known != references_.end()) {
      return known->second;
    }
    std::vector<Endpoint> inputs = view->inputs();
    if (!inputs[0].node->output_type(inputs[0].index).ref) {
      ASSIGN_OR_RETURN(inputs[0].node, ReferenceTo(inputs[0].node));
    }
    Attrs attrs = view->attrs();
    attrs.erase("message");  // PreventGradient has it; the reference form does not
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
  // By node id: the variable that the node passes on, as a reference or as a view. Null: none.
  std::vector<const Node*> variable_of_;
  std::map<int, std::vector<Node*>> views_;          // by variable
  std::map<int, std::vector<const Node*>> updates_;  // by variable
  std::map<int, std::vector<Use>> uses_;             // by variable
  std::map<int, Node*> references_;                  // by view
};

}  // namespace

Status ReadVariablesLate(PassContext& context) { return LateReads(context.graph).Run(); }

}  // namespace penstock

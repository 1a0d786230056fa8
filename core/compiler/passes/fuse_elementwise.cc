// SPDX-License-Identifier: Apache-2.0
//
// Replaces trees of elementwise nodes by _Fused nodes. The pass knows no ops: it asks the kernel of
// each node whether it is a BlockKernel (core/op/block_kernel.h).
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/compiler/passes/estimates.h"
#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"
#include "core/op/block_kernel.h"
#include "core/op/device_name.h"
#include "core/op/kernel.h"

namespace penstock {
namespace {

// The limits of one fused node. Its inputs and results share the first-level cache.
constexpr size_t kTreeNodesMax = 64;
constexpr size_t kTreeEdgesMax = 64;

// Returns whether an operand of shape `operand` surely broadcasts to `output` in a way that blocks
// support: its dimensions of sizes above 1 must be consecutive dimensions of the output.
bool BroadcastsInBlocks(const PartialShape& operand, const PartialShape& output) {
  if (!operand.known_rank() || operand.rank() > output.rank()) return false;
  const int missing = output.rank() - operand.rank();
  enum { kTrailing, kOwn, kLeading } part = kTrailing;
  for (int d = output.rank() - 1; d >= 0; --d) {
    const int64_t own = d < missing ? 1 : operand.dim(d - missing);
    if (output.dim(d) == 1 && own == 1) continue;
    if (own == 1) {
      if (part == kOwn) part = kLeading;
    } else if (own != output.dim(d) || part == kLeading) {
      return false;
    } else {
      part = kOwn;
    }
  }
  return true;
}

class Fuser {
 public:
  Fuser(PassContext* context, const ShapeMap& shapes)
      : graph_(*context->graph),
        shapes_(shapes),
        targets_(context->options.targets.begin(), context->options.targets.end()),
        tree_of_(graph_.max_id(), -1) {}

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (size_t i = order.size(); i-- > 0;) {
      if (!MayFuse(*order[i])) continue;
      const int tree = TreeThatUses(*order[i]);
      if (tree >= 0) {
        AddTo(tree, order[i]);
      } else {
        tree_of_[order[i]->id()] = static_cast<int>(trees_.size());
        trees_.emplace_back();
        AddTo(tree_of_[order[i]->id()], order[i]);
      }
    }
    for (Tree& tree : trees_) {
      if (tree.nodes.size() < 2) continue;
      std::reverse(tree.nodes.begin(), tree.nodes.end());
      RETURN_IF_ERROR(Replace(tree));
    }
    return OkStatus();
  }

 private:
  // Nodes that will be one node. First the root, whose output leaves the tree, then the others in
  // reverse topological order.
  struct Tree {
    std::vector<Node*> nodes = {};
    size_t num_edges = 0;  // into all nodes; the tree has at most as many inputs
  };

  const PartialShape& ShapeOf(Endpoint value) const {
    return shapes_[value.node->id()][value.index];
  }

  bool MayFuse(const Node& node) {
    const OpDef& op = node.op();
    if (targets_.contains(node.name())) return false;
    if (op.stateful || op.may_wait || op.acts_outside || op.runs_dead || op.internal() ||
        FlowOpOf(node) != FlowOp::kNone || node.num_outputs() != 1 || node.num_inputs() == 0) {
      return false;
    }
    const auto is_value = [](const EdgeType& type) { return !type.ref && IsPlain(type.dtype); };
    if (!absl::c_all_of(node.input_types(), is_value) || !is_value(node.output_type(0))) {
      return false;
    }
    // A node with a reference as its input reads the variable when it runs, so it must not run
    // later.
    const PartialShape& shape = ShapeOf({const_cast<Node*>(&node), 0});
    if (!shape.known_rank()) return false;
    for (const Endpoint& in : node.inputs()) {
      if (in.node->output_type(in.index).ref || !BroadcastsInBlocks(ShapeOf(in), shape)) {
        return false;
      }
    }
    return OnCpu(node) && RunsInBlocks(node);
  }

  bool OnCpu(const Node& node) {
    const auto [it, first] = on_cpu_.try_emplace(node.assigned_device(), false);
    if (first) {
      const StatusOr<DeviceName> device = DeviceName::Parse(node.assigned_device());
      it->second = device.ok() && device->type == "CPU";
    }
    return it->second;
  }

  bool RunsInBlocks(const Node& node) {
    const Registry& registry = graph_.registry();
    const StatusOr<const KernelDef*> def = registry.FindKernel(node.op_name(), "CPU", node.attrs());
    if (!def.ok()) return false;
    const auto [it, first] = is_block_kernel_.try_emplace(*def, false);
    if (first) {
      it->second = dynamic_cast<const BlockKernel*>((*def)->make().get()) != nullptr;
    }
    if (!it->second) return false;
    const auto kernel = registry.MakeKernel("CPU", {.name = node.name(),
                                                    .op = node.op(),
                                                    .attrs = node.attrs(),
                                                    .device = node.assigned_device(),
                                                    .input_types = node.input_types(),
                                                    .output_types = node.output_types()});
    return kernel.ok() && dynamic_cast<const BlockKernel&>(**kernel).RunsInBlocks();
  }

  // Returns the tree whose nodes are the only ones that need `node`, if the tree has room for it;
  // -1: none. Paths leave a tree only from its root, so fusing cannot close a cycle.
  int TreeThatUses(const Node& node) const {
    if (node.out_edges().empty() || !node.control_outputs().empty()) return -1;
    const int tree = tree_of_[node.out_edges()[0].dst->id()];
    if (tree < 0) return -1;
    for (const OutEdge& edge : node.out_edges()) {
      if (tree_of_[edge.dst->id()] != tree) return -1;
    }
    const Node& root = *trees_[tree].nodes[0];
    const bool fits =
        trees_[tree].nodes.size() < kTreeNodesMax && trees_[tree].num_edges < kTreeEdgesMax &&
        root.assigned_device() == node.assigned_device() &&
        ShapeOf({const_cast<Node*>(&node), 0}) == ShapeOf({const_cast<Node*>(&root), 0});
    return fits ? tree : -1;
  }

  void AddTo(int tree, Node* node) {
    tree_of_[node->id()] = tree;
    trees_[tree].nodes.push_back(node);
    trees_[tree].num_edges += static_cast<size_t>(node->num_inputs());
  }

  // Replaces the nodes of the tree, which are in topological order, by one node.
  Status Replace(const Tree& tree) {
    Node* const root = tree.nodes.back();
    Graph::NodeSpec spec{.name = graph_.UniqueName(StrCat(root->name(), "/fused")),
                         .op = kFusedOp,
                         .device = root->requested_device()};
    std::vector<std::string> names;
    std::vector<FunctionName> functions;
    std::vector<int64_t> operands;
    absl::flat_hash_map<const Node*, int> position;
    for (Node* node : tree.nodes) {
      operands.push_back(node->num_inputs());
      for (const Endpoint& in : node->inputs()) {
        const auto in_tree = position.find(in.node);
        operands.push_back(in_tree != position.end() ? -1 - in_tree->second
                                                     : InputIndex(in, &spec.inputs));
      }
      position.emplace(node, static_cast<int>(names.size()));
      names.push_back(node->name());
      functions.push_back({node->op_name(), DeclaredAttrs(*node)});
      spec.control_inputs.insert(spec.control_inputs.end(), node->control_inputs().begin(),
                                 node->control_inputs().end());
    }
    std::vector<EdgeType> types;
    for (const Endpoint& in : spec.inputs) types.push_back(in.node->output_type(in.index));
    spec.attrs = {{"T", root->output_type(0)},       {"Tin", std::move(types)},
                  {"nodes", std::move(functions)},   {kFusedNodes, std::move(names)},
                  {"operands", std::move(operands)}, {"shape", ShapeOf({root, 0})}};
    ASSIGN_OR_RETURN(Node * fused, graph_.AddNode(std::move(spec)));
    graph_.set_assigned_device(fused, root->assigned_device());
    RETURN_IF_ERROR(graph_.ReplaceUses({root, 0}, {fused, 0}));
    for (Node* after : std::vector<Node*>(root->control_outputs())) {
      graph_.AddControlEdge(fused, after);
    }
    for (size_t i = tree.nodes.size(); i-- > 0;) graph_.RemoveNode(tree.nodes[i]);
    return OkStatus();
  }

  static int64_t InputIndex(Endpoint in, std::vector<Endpoint>* inputs) {
    const auto found = std::find(inputs->begin(), inputs->end(), in);
    const int64_t index = found - inputs->begin();
    if (found == inputs->end()) inputs->push_back(in);
    return index;
  }

  // Returns the node's attributes without private ones, which kernels do not read.
  static std::shared_ptr<const Attrs> DeclaredAttrs(const Node& node) {
    auto attrs = std::make_shared<Attrs>();
    for (const auto& [name, value] : node.attrs()) {
      if (!name.starts_with('_')) attrs->emplace(name, value);
    }
    return attrs;
  }

  Graph& graph_;
  const ShapeMap& shapes_;
  const absl::flat_hash_set<string_view> targets_;
  std::vector<int> tree_of_;  // by node id; -1: none
  std::vector<Tree> trees_;
  absl::flat_hash_map<std::string, bool> on_cpu_;  // by device
  absl::flat_hash_map<const KernelDef*, bool> is_block_kernel_;
};

}  // namespace

Status FuseElementwise(PassContext& context) {
  if (context.graph->registry().FindOp(kFusedOp) == nullptr) return OkStatus();
  // Expected shapes suffice, because the kernel takes inputs of any shapes.
  ASSIGN_OR_RETURN(const ShapeMap shapes, ExpectedShapes(context));
  return Fuser(&context, shapes).Run();
}

}  // namespace penstock

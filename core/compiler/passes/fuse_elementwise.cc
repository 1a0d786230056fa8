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
#include "core/compiler/placement/placed_problem.h"
#include "core/compiler/placement/placer.h"
#include "core/compiler/placement/report_prediction.h"
#include "core/graph/loop_frames.h"
#include "core/op/block_kernel.h"
#include "core/op/device_name.h"
#include "core/op/kernel.h"

namespace penstock {
namespace {

// The limits of one fused node. Its inputs and results share the first-level cache.
constexpr size_t kTreeNodesMax = 64;
constexpr size_t kTreeEdgesMax = 64;

// How many nodes ExistsBefore visits, at most.
constexpr size_t kVisitsMax = 64;

// Stands for an unknown dimension, in questions to kernels about shapes.
constexpr int64_t kSomeSize = 1009;

Shape ExampleOf(const PartialShape& shape) {
  Shape example;
  for (const int64_t dim : shape.dims()) example.AddDim(dim < 0 ? kSomeSize : dim);
  return example;
}

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
        tree_of_(graph_.max_id(), -1),
        position_(graph_.max_id()) {}

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (size_t i = 0; i < order.size(); ++i) position_[order[i]->id()] = static_cast<int>(i);
    for (size_t i = order.size(); i-- > 0;) {
      if (!MayFuse(*order[i])) continue;
      tree_of_[order[i]->id()] = static_cast<int>(trees_.size());
      trees_.push_back({.nodes = {order[i]}, .num_edges = NumInputs(*order[i])});
      Join(tree_of_[order[i]->id()]);
    }
    // Trees that needed too many inputs when their roots were looked at may share these inputs. The
    // inner trees come last.
    for (size_t tree = trees_.size(); tree-- > 0;) JoinAllInto(static_cast<int>(tree));
    for (bool joined = true; joined;) {
      joined = false;
      for (size_t tree = 0; tree < trees_.size(); ++tree) {
        joined = Join(static_cast<int>(tree)) || joined;
      }
    }
    for (Tree& tree : trees_) {
      if (tree.nodes.size() < 2) continue;
      std::sort(tree.nodes.begin(), tree.nodes.end(), [&](const Node* a, const Node* b) {
        return position_[a->id()] < position_[b->id()];
      });
      RETURN_IF_ERROR(Replace(tree));
    }
    return OkStatus();
  }

 private:
  // Nodes that will be one node. The first one is the root, whose output leaves the tree. No nodes:
  // they have joined another tree.
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
        FlowOpOf(node) != FlowOp::kNone || node.num_outputs() != 1 || node.num_inputs() == 0 ||
        NumInputs(node) > kTreeEdgesMax) {
      return false;
    }
    // Not complex numbers: loops may round their products differently in other places of a tensor.
    const auto is_value = [](const EdgeType& type) {
      return !type.ref && IsPlain(type.dtype) && type.dtype != DType::kComplex64 &&
             type.dtype != DType::kComplex128;
    };
    if (!absl::c_all_of(node.input_types(), is_value) || !is_value(node.output_type(0))) {
      return false;
    }
    // A node with a reference as its input reads the variable when it runs, so it must not run
    // later.
    const PartialShape& shape = ShapeOf({const_cast<Node*>(&node), 0});
    if (!shape.known_rank()) return false;
    bool any_full = false;  // blocks need an input of the output's shape
    for (const Endpoint& in : node.inputs()) {
      if (in.node->output_type(in.index).ref || !BroadcastsInBlocks(ShapeOf(in), shape)) {
        return false;
      }
      any_full = any_full || ShapeOf(in) == shape;
    }
    return any_full && OnCpu(node) && RunsInBlocks(node);
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
    if (!kernel.ok()) return false;
    const auto& blocks = dynamic_cast<const BlockKernel&>(**kernel);
    return blocks.RunsInBlocks() && AcceptsShapes(blocks, node);
  }

  bool AcceptsShapes(const BlockKernel& kernel, const Node& node) const {
    std::vector<Shape> examples;
    for (const Endpoint& in : node.inputs()) examples.push_back(ExampleOf(ShapeOf(in)));
    std::vector<const Shape*> inputs;
    for (const Shape& example : examples) inputs.push_back(&example);
    return kernel.AcceptsShapes(ExampleOf(OutputShapeOf(node)), inputs);
  }

  static size_t NumInputs(const Node& node) { return static_cast<size_t>(node.num_inputs()); }
  const PartialShape& OutputShapeOf(const Node& node) const { return shapes_[node.id()][0]; }

  // Returns the tree whose nodes are the only ones that need `node`; -1: none.
  int TreeThatUses(const Node& node) const {
    if (node.out_edges().empty() || !node.control_outputs().empty()) return -1;
    const int tree = tree_of_[node.out_edges()[0].dst->id()];
    for (const OutEdge& edge : node.out_edges()) {
      if (tree_of_[edge.dst->id()] != tree) return -1;
    }
    return tree;
  }

  // Adds the nodes of tree `from` to the tree that uses its root, if that tree has room for them
  // and does not keep more memory alive. Paths leave a tree only from its root, so fusing cannot
  // close a cycle.
  bool Join(int from) {
    if (trees_[from].nodes.empty()) return false;
    const int to = TreeThatUses(*trees_[from].nodes[0]);
    if (to < 0 || !Fits(trees_[from], trees_[to]) || NeedsMoreMemory(trees_[from], trees_[to])) {
      return false;
    }
    Move(from, to);
    return true;
  }

  // Adds all trees that compute only inputs of tree `to`, if the whole needs no more large inputs
  // than one node with two operands, or than the tree alone.
  void JoinAllInto(int to) {
    if (trees_[to].nodes.empty()) return;
    const Tree alone = trees_[to];
    const size_t num_before = LargeInputs(alone).size();
    std::vector<std::pair<int, Tree>> moved;
    for (bool joined = true; joined;) {
      joined = false;
      for (const Endpoint& in : LargeInputs(trees_[to])) {
        const int from = tree_of_[in.node->id()];
        if (from < 0 || TreeThatUses(*in.node) != to || !Fits(trees_[from], trees_[to])) continue;
        moved.emplace_back(from, trees_[from]);
        Move(from, to);
        joined = true;
      }
    }
    if (LargeInputs(trees_[to]).size() <= std::max<size_t>(2, num_before)) return;
    trees_[to] = alone;
    for (auto& [from, tree] : moved) {
      for (const Node* node : tree.nodes) tree_of_[node->id()] = from;
      trees_[from] = std::move(tree);
    }
  }

  bool Fits(const Tree& inner, const Tree& outer) const {
    const Node &node = *inner.nodes[0], &root = *outer.nodes[0];
    return outer.nodes.size() + inner.nodes.size() <= kTreeNodesMax &&
           outer.num_edges + inner.num_edges <= kTreeEdgesMax &&
           root.assigned_device() == node.assigned_device() &&
           OutputShapeOf(node) == OutputShapeOf(root);
  }

  void Move(int from, int to) {
    Tree &inner = trees_[from], &outer = trees_[to];
    for (const Node* moved : inner.nodes) tree_of_[moved->id()] = to;
    outer.nodes.insert(outer.nodes.end(), inner.nodes.begin(), inner.nodes.end());
    outer.num_edges += inner.num_edges;
    inner = {};
  }

  // Returns whether a tree of the nodes of both trees may keep more large tensors alive than the
  // two trees one after the other. All inputs of a _Fused node must exist when it starts. The
  // result of `inner` is an input of `outer` that the larger tree does not need; instead it needs
  // the inputs of `inner`. An input of `outer` that exists anyway when `inner` starts, such as an
  // activation of the forward pass, costs nothing.
  bool NeedsMoreMemory(const Tree& inner, const Tree& outer) const {
    const std::vector<Endpoint> before = LargeInputs(outer);
    const std::vector<Endpoint> inputs = LargeInputs(inner);
    const auto added = absl::c_count_if(
        inputs, [&](const Endpoint& in) { return !absl::c_linear_search(before, in); });
    if (added <= 1 || before.size() <= 1) return false;
    return !absl::c_all_of(before, [&](const Endpoint& in) {
      return in.node == inner.nodes[0] || ExistsBefore(*in.node, inner);
    });
  }

  // Returns whether the outputs of `maker` surely exist before the tree starts: they are fed, or a
  // path leads from `maker` to the tree. Searches only a part of the graph.
  bool ExistsBefore(const Node& maker, const Tree& tree) const {
    if (maker.op().end == EndOp::kFeed || maker.op().is_constant) return true;
    absl::flat_hash_set<const Node*> seen;
    std::vector<const Node*> open(tree.nodes.begin(), tree.nodes.end());
    while (!open.empty() && seen.size() < kVisitsMax) {
      const Node& node = *open.back();
      open.pop_back();
      if (&node == &maker) return true;
      // A Merge does not wait for all of its inputs.
      if (FlowOpOf(node) == FlowOp::kMerge || !seen.insert(&node).second) continue;
      const auto visit = [&](const Node* before) {
        const int at = position_[before->id()];
        const bool is_before = at < position_[node.id()];  // false for the back edge of a loop
        if (is_before && at >= position_[maker.id()]) open.push_back(before);
      };
      for (const Endpoint& in : node.inputs()) visit(in.node);
      for (const Node* before : node.control_inputs()) visit(before);
    }
    return false;
  }

  // Returns the inputs of the tree that have the shape of its output.
  std::vector<Endpoint> LargeInputs(const Tree& tree) const {
    const int index = tree_of_[tree.nodes[0]->id()];
    std::vector<Endpoint> large;
    for (const Node* node : tree.nodes) {
      for (const Endpoint& in : node->inputs()) {
        if (tree_of_[in.node->id()] == index || absl::c_linear_search(large, in)) continue;
        if (ShapeOf(in) == OutputShapeOf(*tree.nodes[0])) large.push_back(in);
      }
    }
    return large;
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
  std::vector<int> tree_of_;   // by node id; -1: none
  std::vector<int> position_;  // by node id; in the topological order
  std::vector<Tree> trees_;
  absl::flat_hash_map<std::string, bool> on_cpu_;  // by device
  absl::flat_hash_map<const KernelDef*, bool> is_block_kernel_;
};

// Replaces the prediction of the pass "place", which knows only the single nodes. The times of the
// fused nodes were measured under their own names.
Status PredictFused(PassContext& context) {
  context.shapes.reset();  // they lack the fused nodes
  RETURN_IF_ERROR(EstimateCosts(context));
  ASSIGN_OR_RETURN(PlacedProblem placed,
                   DescribePlaced(*context.graph, context.devices, context.costs,
                                  context.options.client_device));
  PlacementReport& report = context.report.placement;
  const double least_ns = report.least_ns;
  ReportPrediction(placed.problem, placed.order, placed.device, context.costs, &report);
  report.least_ns = std::min(report.least_ns, least_ns);
  if (context.options.describe != nullptr) {
    *context.options.describe = {.problem = std::move(placed.problem),
                                 .device = std::move(placed.device)};
  }
  return OkStatus();
}

}  // namespace

Status FuseElementwise(PassContext& context) {
  if (context.graph->registry().FindOp(kFusedOp) == nullptr) return OkStatus();
  // Fused nodes are neither recomputed nor split to keep a limit, and their measured times do not
  // say where the single nodes would run best.
  if (context.options.memory_limit != 0 || context.options.any_task) return OkStatus();
  // Expected shapes suffice, because the kernel takes inputs of any shapes.
  ASSIGN_OR_RETURN(const ShapeMap shapes, ExpectedShapes(context));
  const int max_id = context.graph->max_id();
  RETURN_IF_ERROR(Fuser(&context, shapes).Run());
  const bool fused = context.graph->max_id() > max_id;
  return fused && context.options.predict ? PredictFused(context) : OkStatus();
}

}  // namespace penstock

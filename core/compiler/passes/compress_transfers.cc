// SPDX-License-Identifier: Apache-2.0
//
// Sends floats to other tasks as bfloat16. Half of the bytes that a training transfers are the low
// halves of floats. Weights sent to a worker and gradients sent back are precise enough without
// them. But a value that is stored must keep them, because rounded weights in a checkpoint stay
// rounded. So this pass first finds the values that must arrive unchanged, and rounds the others.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/compiler/passes/passes.h"
#include "core/op/private_attrs.h"
#include "core/op/task_name.h"

namespace penstock {
namespace {

// Tensors with fewer elements are sent unchanged: rounding would save little, because the cost of a
// message exceeds that of its bytes, and learning rates, counters and losses are among them.
constexpr int64_t kElementsMin = 256;

bool IsStateOrVariant(EdgeType type) {
  return type.refers_to_state() || type.dtype == DType::kVariant;
}

// Returns true if inputs of the node may outlive the step or leave the cluster: variables, queues,
// files, lists, fetches.
bool StoresInputs(const Node& node) {
  const OpDef& op = node.op();
  return op.stateful || op.acts_outside || op.end == EndOp::kFetch ||
         absl::c_any_of(node.input_types(), IsStateOrVariant) ||
         absl::c_any_of(node.output_types(), IsStateOrVariant);
}

// Returns true if the op only moves elements of `arg` to its outputs, unchanged. An op that also
// accepts strings cannot calculate with its elements: it copies, joins, cuts or selects them.
bool OnlyMovesElements(const OpDef& op, const ArgDef& arg) {
  if (op.passes_through || op.flow != FlowOp::kNone || arg.type.list) return true;
  const auto type = absl::c_find_if(
      op.types, [&](const TypeAttrDef& attr) { return attr.name == arg.type.type; });
  return type != op.types.end() && absl::c_linear_search(type->allowed, DType::kString) &&
         absl::c_any_of(op.outputs,
                        [&](const ArgDef& out) { return out.type.type == arg.type.type; });
}

int64_t CountOf(const ArgDef& arg, const Node& node) {
  if (!arg.type.count.empty()) return *node.attr<int64_t>(arg.type.count);
  if (!arg.type.list) return 1;
  const auto* const types = node.attr<std::vector<EdgeType>>(arg.type.type);
  return types == nullptr ? 0 : std::ssize(*types);  // an empty list has no type
}

const ArgDef& ArgOf(const Node& node, int64_t input) {
  for (const ArgDef& arg : node.op().inputs) {
    const int64_t count = CountOf(arg, node);
    if (input < count) return arg;
    input -= count;
  }
  CHECK(false, "node ", node.name(), " has fewer inputs");
}

// The nodes whose outputs are stored, directly or after ops that only move elements.
class KeptValues {
 public:
  explicit KeptValues(const Graph& graph) : kept_(graph.max_id()) {
    for (const Node* node : graph.nodes()) {
      if (StoresInputs(*node)) Follow(*node);
    }
    while (!to_follow_.empty()) {
      const Node* const node = to_follow_.back();
      to_follow_.pop_back();
      Follow(*node);
    }
  }

  // Returns whether the value of this input must arrive at the node unrounded.
  bool Needs(const Node& node, int input) const {
    if (node.input_type(input).dtype != DType::kFloat) return true;
    if (StoresInputs(node)) return !ArgOf(node, input).is_gradient;
    return kept_[node.id()] && OnlyMovesElements(node.op(), ArgOf(node, input));
  }

 private:
  void Follow(const Node& node) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Node* const source = node.input(i).node;
      if (node.input_type(i).dtype != DType::kFloat || kept_[source->id()]) continue;
      if (!Needs(node, i)) continue;
      kept_[source->id()] = true;
      to_follow_.push_back(source);
    }
  }

  std::vector<bool> kept_;  // by node id
  std::vector<const Node*> to_follow_;
};

// Returns true if the pass must not insert a Cast after outputs of `source`: after constants, which
// the partitioner copies; after an Enter, because the partitioner sends the value before it enters
// the loop; after a NextIteration, because only it may lead back to a Merge; and after feeds, which
// stay exact.
bool CannotBeCast(const Node& source) {
  const OpDef& op = source.op();
  return op.end == EndOp::kFeed || (op.is_constant && source.control_inputs().empty()) ||
         op.flow == FlowOp::kEnter || op.flow == FlowOp::kNextIteration;
}

class Compressor {
 public:
  explicit Compressor(PassContext* context)
      : context_(*context), graph_(*context->graph), kept_(graph_) {}

  Status Run() {
    for (Node* source : graph_.nodes()) {
      if (!CannotBeCast(*source)) RETURN_IF_ERROR(CompressOutputs(source));
    }
    return OkStatus();
  }

 private:
  struct Destination {
    int output;
    std::string device;
    auto operator<=>(const Destination&) const = default;
  };

  Status CompressOutputs(Node* source) {
    std::map<Destination, std::vector<OutEdge>> transfers;
    for (const OutEdge& edge : source->out_edges()) {
      if (source->output_type(edge.src_index).dtype != DType::kFloat) continue;
      const std::string& device = edge.dst->assigned_device();
      ASSIGN_OR_RETURN(const bool same, SameTask(source->assigned_device(), device));
      if (!same) transfers[{edge.src_index, device}].push_back(edge);
    }
    std::map<int, Node*> rounded;  // by output: the Cast that rounds it
    for (const auto& [to, edges] : transfers) {
      // If one consumer needs the exact tensor, all consumers on that device use it.
      if (absl::c_any_of(edges, [&](const OutEdge& e) { return MustBeExact(e); })) continue;
      ASSIGN_OR_RETURN(const bool wanted, MayRound(*source, to.output));
      if (!wanted) continue;
      Node*& sent = rounded[to.output];
      if (sent == nullptr) {
        ASSIGN_OR_RETURN(sent, AddCast("_to_bfloat16_", {source, to.output}, DType::kBfloat16,
                                       *source, source->assigned_device()));
      }
      ASSIGN_OR_RETURN(Node * received,
                       AddCast("_from_bfloat16_", {sent, 0}, DType::kFloat, *source, to.device));
      for (const OutEdge& edge : edges) {
        RETURN_IF_ERROR(graph_.SetInput(edge.dst, edge.dst_index, {received, 0}));
      }
    }
    return OkStatus();
  }

  bool MustBeExact(const OutEdge& edge) const {
    // The partitioner reports references to another task as an error.
    return edge.dst->input_type(edge.dst_index).ref || kept_.Needs(*edge.dst, edge.dst_index);
  }

  StatusOr<bool> MayRound(const Node& source, int output) {
    if (const AttrValue* given = source.FindAttr(kSendAsAttr)) {
      const std::string* const type = given->get<std::string>();
      if (type != nullptr && *type == Name(DType::kBfloat16)) return true;
      if (type != nullptr && *type == Name(DType::kFloat)) return false;
      return InvalidArgument("node '", source.name(), "': attribute ", kSendAsAttr,
                             " must be \"bfloat16\" or \"float\"");
    }
    if (!context_.options.bfloat16_transfers) return false;
    ASSIGN_OR_RETURN(const ShapeMap* shapes, context_.Shapes());
    const PartialShape& shape = (*shapes)[source.id()][output];
    return !shape.fully_known() || shape.ToShape().num_elements() >= kElementsMin;
  }

  StatusOr<bool> SameTask(const std::string& a, const std::string& b) {
    if (a == b) return true;
    ASSIGN_OR_RETURN(const TaskName* of_a, TaskOf(a));
    ASSIGN_OR_RETURN(const TaskName* of_b, TaskOf(b));
    return *of_a == *of_b;
  }
  StatusOr<const TaskName*> TaskOf(const std::string& device) {
    const auto known = tasks_.find(device);
    if (known != tasks_.end()) return &known->second;
    ASSIGN_OR_RETURN(TaskName task, TaskName::OfDevice(device));
    return &tasks_.emplace(device, std::move(task)).first->second;
  }

  StatusOr<Node*> AddCast(const char* prefix, Endpoint from, DType to, const Node& source,
                          const std::string& device) {
    const DType dtype = from.node->output_type(from.index).dtype;
    const std::string name = StrCat(prefix, source.name());
    ASSIGN_OR_RETURN(Node * cast, graph_.AddNode({.name = graph_.UniqueName(name),
                                                  .op = "Cast",
                                                  .inputs = {from},
                                                  .attrs = {{"SrcT", dtype}, {"DstT", to}},
                                                  .device = device}));
    graph_.set_assigned_device(cast, device);
    return cast;
  }

  PassContext& context_;
  Graph& graph_;
  const KeptValues kept_;
  std::map<std::string, TaskName> tasks_;  // by device
};

bool MayRoundTransfers(const PassContext& context) {
  const std::vector<Node*> nodes = context.graph->nodes();
  const auto elsewhere = [&](const Node* node) {
    return node->assigned_device() != nodes[0]->assigned_device();
  };
  if (absl::c_none_of(nodes, elsewhere)) return false;
  return context.options.bfloat16_transfers ||
         absl::c_any_of(nodes, [](const Node* node) { return node->FindAttr(kSendAsAttr); });
}

}  // namespace

Status CompressTransfers(PassContext& context) {
  return MayRoundTransfers(context) ? Compressor(&context).Run() : OkStatus();
}

}  // namespace penstock

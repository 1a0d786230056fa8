// SPDX-License-Identifier: Apache-2.0
//
// Removes nodes whose output has the bits of an input: x * 1, Reshape to the same shape, and the
// like. This file names ops, because each rule is for one op.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/compiler/passes/colocation_targets.h"
#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

// Returns the value of a constant that is not on a branch and not in a loop; null for other nodes.
const Tensor* ConstantOf(Endpoint in) {
  if (!in.node->op().is_constant || !in.node->control_inputs().empty()) return nullptr;
  return in.node->attr<Tensor>("value");
}

std::optional<std::vector<int64_t>> Integers(Endpoint in) {
  const Tensor* const value = ConstantOf(in);
  if (value == nullptr || value->rank() != 1) return std::nullopt;
  if (value->dtype() == DType::kInt64) {
    const auto numbers = value->flat<int64_t>();
    return std::vector<int64_t>(numbers.begin(), numbers.end());
  }
  if (value->dtype() != DType::kInt32) return std::nullopt;
  const auto numbers = value->flat<int32_t>();
  return std::vector<int64_t>(numbers.begin(), numbers.end());
}

// Returns whether all inputs but the first one are such constants. Then the node does not wait for
// them, and it is not dead because of them.
bool HasConstantArguments(const Node& node) {
  for (int i = 1; i < node.num_inputs(); ++i) {
    if (ConstantOf(node.input(i)) == nullptr) return false;
  }
  return true;
}

// Returns whether the value may share the memory of a variable. Such a view is read when its
// consumer runs (late_reads.cc), so a consumer of a copy must not take the view instead.
bool MayBeView(Endpoint value) {
  while (!value.node->output_type(value.index).ref) {
    const Node& node = *value.node;
    if (FlowOpOf(node) == FlowOp::kMerge) return true;  // any of its inputs may be a view
    if (node.op().ref_form.empty() || node.num_inputs() == 0) return false;
    value = node.input(0);
  }
  return true;
}

template <class T>
bool AllAre(const Tensor& tensor, T value) {
  return absl::c_all_of(tensor.flat<T>(), [&](const T& element) {
    return std::memcmp(&element, &value, sizeof(T)) == 0;  // -0.0 is not 0.0
  });
}

// Neutral operands. Only kMinusZero is neutral in a sum of floats, because -0.0 + 0.0 is 0.0.
enum class Neutral { kOne, kZero, kMinusZero, kTrue, kFalse };

bool IsNeutral(const Tensor& tensor, Neutral neutral) {
  const double value = neutral == Neutral::kOne ? 1 : neutral == Neutral::kMinusZero ? -0.0 : 0.0;
  switch (tensor.dtype()) {
    case DType::kFloat:
      return AllAre<float>(tensor, static_cast<float>(value));
    case DType::kDouble:
      return AllAre<double>(tensor, value);
    case DType::kInt32:
      return AllAre<int32_t>(tensor, static_cast<int32_t>(value));
    case DType::kInt64:
      return AllAre<int64_t>(tensor, static_cast<int64_t>(value));
    case DType::kBool:
      return AllAre<bool>(tensor, neutral == Neutral::kTrue);
    default:
      // Not complex numbers, where inf * (1 + 0i) has a NaN, and not 16-bit floats, which kernels
      // convert to float and back.
      return false;
  }
}

class Simplifier {
 public:
  Simplifier(PassContext* context, const ShapeMap& shapes)
      : graph_(*context->graph),
        shapes_(shapes),
        targets_(context->options.targets.begin(), context->options.targets.end()),
        beside_(ColocationTargets(graph_)) {}

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* node : order) {
      if (!MaySimplify(*node)) continue;
      RETURN_IF_ERROR(SkipInner(node));
      const Endpoint same = SameAs(*node);
      if (same.node == nullptr || MayBeView(same)) continue;
      RETURN_IF_ERROR(graph_.ReplaceUses({node, 0}, same));
      if (node->control_outputs().empty() && !targets_.contains(node->name())) {
        graph_.RemoveNode(node);
      }
    }
    return OkStatus();
  }

 private:
  static constexpr Endpoint kNone = {};

  const PartialShape& ShapeOf(Endpoint value) const {
    return shapes_[value.node->id()][value.index];
  }

  // Consumers that are connected to an input of the node no longer wait for the node's control
  // inputs, and a reference is read when its consumer runs. A node without consumers would be
  // removed, so nodes must stay that determine the devices of others.
  bool MaySimplify(const Node& node) const {
    return !beside_.contains(node.name()) && node.control_inputs().empty() &&
           node.num_outputs() == 1 && node.num_inputs() > 0 && !node.op().stateful &&
           !node.op().internal() && FlowOpOf(node) == FlowOp::kNone &&
           node.FindAttr(kSendAsAttr) == nullptr && !node.output_type(0).ref &&
           !node.op().is_constant && absl::c_none_of(node.inputs(), [](const Endpoint& in) {
             return in.node->output_type(in.index).ref;
           });
  }

  // Returns whether a consumer of the node may be connected to the node's input 0 instead.
  bool MaySkip(const Node& node) const {
    return MaySimplify(node) && FlowOpOf(*node.input(0).node) == FlowOp::kNone;
  }

  // Returns whether two values that have the same elements in the same order surely have the same
  // shape: at most one dimension is unknown, and the number of elements determines it.
  static bool SameShape(const PartialShape& a, const PartialShape& b) {
    if (!a.known_rank() || a != b) return false;
    int unknown = 0;
    bool empty = false;
    for (int d = 0; d < a.rank(); ++d) {
      unknown += a.dim(d) < 0;
      empty = empty || a.dim(d) == 0;
    }
    return unknown == 0 || (unknown == 1 && !empty);
  }

  bool Known(Endpoint value) const { return ShapeOf(value).fully_known(); }
  bool KnownSame(const Node& node) const {
    return Known(node.input(0)) && ShapeOf(node.input(0)) == ShapeOf(OutputOf(node));
  }
  static Endpoint OutputOf(const Node& node) { return {const_cast<Node*>(&node), 0}; }

  // Returns true if the node gives the elements of its input 0 another shape.
  static bool Reshapes(const Node& node) {
    const std::string& op = node.op_name();
    return op == "Reshape" || op == "Squeeze" || op == "ExpandDims";
  }

  // Connects an Identity of an Identity, and a Reshape of a Reshape, to the input of the inner
  // node.
  Status SkipInner(Node* node) {
    for (;;) {
      const Node& inner = *node->input(0).node;
      if (!MaySkip(inner)) return OkStatus();
      const bool identities = node->op().passes_through && inner.op().passes_through &&
                              node->requested_device() == inner.requested_device();
      // An inner node with unknown shapes could fail.
      const bool reshapes = node->op_name() == "Reshape" && Reshapes(inner) &&
                            Known(inner.input(0)) && Known(OutputOf(inner)) &&
                            HasConstantArguments(*node) && HasConstantArguments(inner);
      if (!identities && !reshapes) return OkStatus();
      RETURN_IF_ERROR(graph_.SetInput(node, 0, inner.input(0)));
    }
  }

  // Returns the value that the node's output equals; kNone if there is none.
  Endpoint SameAs(const Node& node) const {
    using Rule = Endpoint (Simplifier::*)(const Node&) const;
    static const auto* const rules = new absl::flat_hash_map<string_view, Rule>{
        {"Mul", &Simplifier::Commutative<Neutral::kOne, Neutral::kOne>},
        {"Add", &Simplifier::Commutative<Neutral::kMinusZero, Neutral::kZero>},
        {"AddV2", &Simplifier::Commutative<Neutral::kMinusZero, Neutral::kZero>},
        {"Sub", &Simplifier::Right<Neutral::kZero>},
        {"Div", &Simplifier::Right<Neutral::kOne>},
        {"RealDiv", &Simplifier::Right<Neutral::kOne>},
        {"LogicalAnd", &Simplifier::Commutative<Neutral::kTrue, Neutral::kTrue>},
        {"LogicalOr", &Simplifier::Commutative<Neutral::kFalse, Neutral::kFalse>},
        {"Neg", &Simplifier::Involution},
        {"LogicalNot", &Simplifier::Involution},
        {"Invert", &Simplifier::Involution},
        {"Conj", &Simplifier::Involution},
        {"Reshape", &Simplifier::Reshape},
        {"Squeeze", &Simplifier::Reshape},
        {"ExpandDims", &Simplifier::Reshape},
        {"Slice", &Simplifier::WholeSlice},
        {"StridedSlice", &Simplifier::WholeStrides},
        {"Tile", &Simplifier::WholeIf<Neutral::kOne>},
        {"BroadcastTo", &Simplifier::WholeTensor},
        {"Pad", &Simplifier::WholeIf<Neutral::kZero>},
        {"Transpose", &Simplifier::Transpose},
        {"Cast", &Simplifier::Cast},
        {"AddN", &Simplifier::SumOfOne},
    };
    if (FlowOpOf(*node.input(0).node) != FlowOp::kNone) return kNone;
    const auto rule = rules->find(node.op_name());
    return rule == rules->end() ? kNone : (this->*rule->second)(node);
  }

  // Returns input `kept` if the other input is neutral and does not enlarge the result.
  Endpoint Without(const Node& node, int kept, Neutral neutral) const {
    const Endpoint x = node.input(kept);
    const Tensor* const constant = ConstantOf(node.input(1 - kept));
    if (constant == nullptr || FlowOpOf(*x.node) != FlowOp::kNone) return kNone;
    const PartialShape& shape = ShapeOf(x);
    const bool one =
        constant->num_elements() == 1 &&
        (constant->rank() == 0 || (shape.known_rank() && constant->rank() <= shape.rank()));
    if (!one && !(shape.fully_known() && shape.ToShape() == constant->shape())) return kNone;
    return IsNeutral(*constant, neutral) ? x : kNone;
  }
  template <Neutral neutral>
  Endpoint Right(const Node& node) const {
    return Without(node, 0, neutral);
  }
  template <Neutral for_floats, Neutral for_others>
  Endpoint Commutative(const Node& node) const {
    const DType dtype = node.output_type(0).dtype;
    const bool floats = dtype == DType::kFloat || dtype == DType::kDouble;
    const Neutral neutral = floats ? for_floats : for_others;
    const Endpoint left = Without(node, 0, neutral);
    return left.node != nullptr ? left : Without(node, 1, neutral);
  }

  Endpoint Involution(const Node& node) const {
    const DType dtype = node.output_type(0).dtype;
    // Kernels convert these to float and back, which changes the payload of a NaN.
    if (dtype == DType::kHalf || dtype == DType::kBfloat16) return kNone;
    const Node& inner = *node.input(0).node;
    return inner.op_name() == node.op_name() && MaySkip(inner) ? inner.input(0) : kNone;
  }

  // Looks for the output's shape along a chain of nodes that change only the shape.
  Endpoint Reshape(const Node& node) const {
    const PartialShape& shape = ShapeOf(OutputOf(node));
    Endpoint from = node.input(0);
    // Fails if the shape that a step computes has another number of elements.
    if (!HasConstantArguments(node)) return kNone;
    for (;;) {
      if (SameShape(ShapeOf(from), shape)) return from;
      const Node& inner = *from.node;
      if (!Reshapes(inner) || !MaySkip(inner) || !HasConstantArguments(inner) || !Known(from) ||
          !Known(inner.input(0))) {
        return kNone;
      }
      from = inner.input(0);
    }
  }

  Endpoint WholeTensor(const Node& node) const {
    return KnownSame(node) && HasConstantArguments(node) ? node.input(0) : kNone;
  }

  // Requires that all elements of the argument are neutral, because the kernel refuses others.
  template <Neutral neutral>
  Endpoint WholeIf(const Node& node) const {
    const Tensor* const argument = ConstantOf(node.input(1));
    return argument != nullptr && IsNeutral(*argument, neutral) ? WholeTensor(node) : kNone;
  }

  // The kernel fails if the slice leaves the tensor, but the output's shape may be known before.
  Endpoint WholeSlice(const Node& node) const {
    const auto begin = Integers(node.input(1)), size = Integers(node.input(2));
    if (!begin.has_value() || !size.has_value() || !KnownSame(node)) return kNone;
    const PartialShape& shape = ShapeOf(node.input(0));
    if (std::ssize(*begin) != shape.rank() || std::ssize(*size) != shape.rank()) return kNone;
    for (int d = 0; d < shape.rank(); ++d) {
      if ((*begin)[d] != 0 || ((*size)[d] != -1 && (*size)[d] != shape.dim(d))) return kNone;
    }
    return node.input(0);
  }

  Endpoint WholeStrides(const Node& node) const {
    const auto is_zero = [&](string_view mask) {
      const int64_t* const value = node.attr<int64_t>(mask);
      return value != nullptr && *value == 0;
    };
    const auto strides = Integers(node.input(3));
    if (!strides.has_value() || !is_zero("new_axis_mask") || !is_zero("shrink_axis_mask") ||
        absl::c_any_of(*strides, [](int64_t stride) { return stride != 1; })) {
      return kNone;
    }
    return WholeTensor(node);
  }

  Endpoint Transpose(const Node& node) const {
    const auto outer = Integers(node.input(1));
    if (!outer.has_value()) return kNone;
    const Endpoint x = node.input(0);
    if (!ShapeOf(x).known_rank() || ShapeOf(x).rank() != std::ssize(*outer)) return kNone;
    const auto is_identity = [&](const std::vector<int64_t>& order) {
      for (size_t d = 0; d < order.size(); ++d) {
        if (order[d] != static_cast<int64_t>(d)) return false;
      }
      return true;
    };
    if (is_identity(*outer)) return x;
    const Node& inner = *x.node;
    if (inner.op_name() != "Transpose" || !MaySkip(inner)) return kNone;
    const auto first = Integers(inner.input(1));
    if (!first.has_value() || first->size() != outer->size()) return kNone;
    std::vector<int64_t> both;
    for (const int64_t dim : *outer) {
      if (dim < 0 || dim >= std::ssize(*first)) return kNone;
      both.push_back((*first)[static_cast<size_t>(dim)]);
    }
    return is_identity(both) ? inner.input(0) : kNone;
  }

  Endpoint Cast(const Node& node) const {
    return node.input_type(0) == node.output_type(0) ? node.input(0) : kNone;
  }

  Endpoint SumOfOne(const Node& node) const {
    return node.num_inputs() == 1 ? node.input(0) : kNone;
  }

  Graph& graph_;
  const ShapeMap& shapes_;
  const absl::flat_hash_set<string_view> targets_;
  const absl::flat_hash_set<std::string> beside_;
};

}  // namespace

Status SimplifyArithmetic(PassContext& context) {
  ASSIGN_OR_RETURN(const ShapeMap* const shapes, context.Shapes());
  return Simplifier(&context, *shapes).Run();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/graph/flow_context.h"

#include "core/graph/loop_frames.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"

namespace penstock {

std::string FlowOpName(string_view op, Output value) {
  return value.type().ref ? StrCat("Ref", op) : std::string(op);
}

Outputs AddSwitch(Output value, Output predicate) {
  if (!value.valid()) return {value, value};
  Outputs sides = CallN(FlowOpName("Switch", value), {value, predicate});
  sides.resize(2);
  return sides;
}

Output FlowContext::Import(Output output) {
  if (!output.valid() || own_.contains(output.node)) return output;
  const auto [it, is_new] = imported_.try_emplace(std::pair(output.node, output.index));
  if (!is_new) return it->second;
  const Output entry_output = AddEntry(output);
  if (entry_output.valid()) own_.insert(entry_output.node);
  return imported_[{output.node, output.index}] = entry_output;
}

// Returns a node inside the context that can replace `node` as a control input, because control
// edges must not come from outside: the node through which an output of `node` enters.
StatusOr<Node*> FlowContext::ImportControl(Node* node) {
  if (own_.contains(node->id())) return node;
  Output value = builder_.OutputOf(node);
  if (node->num_outputs() == 0) {
    const auto outside = builder_.OutsideScope();
    const auto after = builder_.ControlDependencies({value});
    value = Constant(builder_, Tensor::Scalar<int32_t>(0));
  }
  value = Import(value);
  RETURN_IF_ERROR(builder_.status());
  Node* const entry_output = builder_.NodeOf(value);
  if (FlowOpOf(*entry_output) != FlowOp::kSwitch) return entry_output;
  // The Switch runs whichever branch is taken; an Identity after it runs only if its branch is.
  const auto no_control_scope = builder_.ClearControlDependencies();
  const Output taken = Identity(value);
  RETURN_IF_ERROR(builder_.status());
  return builder_.NodeOf(taken);
}

Status FlowContext::Adapt(GraphBuilder::NewNode* node) {
  bool held = false;
  for (NodeInput& input : node->inputs) {
    for (Output& output : input.outputs) {
      output = Import(output);
      held |= output.valid() && Holds(output);
    }
  }
  for (Node*& control : node->control_inputs) {
    ASSIGN_OR_RETURN(control, ImportControl(control));
    held |= Holds(builder_.OutputOf(control));
  }
  if (!held && pivot_.valid()) node->control_inputs.push_back(builder_.NodeOf(pivot_));
  return OkStatus();
}

void FlowContext::Added(int node) {
  own_.insert(node);
  if (outer_ != nullptr) outer_->Added(node);
}

BranchContext::BranchContext(GraphBuilder& builder, Output predicate, bool side)
    : FlowContext(builder), predicate_(predicate), side_(side) {
  const Output taken = AddSwitch(predicate_, predicate_)[side_];
  if (!taken.valid()) return;
  Adopt(taken);
  const Output pivot = Identity(taken);
  if (!pivot.valid()) return;
  Adopt(pivot);
  set_pivot(pivot);
}

Output BranchContext::AddEntry(Output outside) {
  const auto scope = builder_.OutsideScope();
  const auto colocation_scope = builder_.ColocateWith(outside);
  return AddSwitch(outside, predicate_)[side_];
}

LoopContext::LoopContext(GraphBuilder& builder, std::string frame, const LoopOptions& options)
    : FlowContext(builder), frame_(std::move(frame)), options_(options) {
  if (options.parallel_iterations < 1) {
    builder.Fail(InvalidArgument("loop '", frame_, "': parallel_iterations must be at least 1, is ",
                                 options.parallel_iterations));
  }
}

Output LoopContext::AddEnter(Output value, bool is_constant) {
  if (!value.valid()) return value;
  Attrs attrs = {{"frame_name", frame_},
                 {"is_constant", is_constant},
                 {"parallel_iterations", options_.parallel_iterations}};
  if (options_.swap_memory) attrs[kSwapMemoryAttr] = true;
  const Output entered = Call(FlowOpName("Enter", value), {value}, std::move(attrs));
  if (entered.valid()) Adopt(entered);
  return entered;
}

Output LoopContext::Enter(Output initial) { return AddEnter(initial, /*is_constant=*/false); }

Output LoopContext::EnterInvariant(Output value) {
  const bool inside = builder_.context() == this;
  Output entered;
  if (inside) {
    const auto outside = builder_.OutsideScope();
    // The Enter of a handle must be on the device of the handle's resource.
    const bool handle = value.type().refers_to_state();
    const auto handle_scope =
        handle ? builder_.ColocateWith(value) : builder_.ClearControlDependencies();
    entered = AddEnter(value, /*is_constant=*/true);
  } else {
    entered = AddEnter(value, /*is_constant=*/true);
  }
  if (entered.valid()) invariants_.insert(entered.node);
  return entered;
}

}  // namespace penstock

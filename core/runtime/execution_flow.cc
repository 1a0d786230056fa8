// SPDX-License-Identifier: Apache-2.0
//
// The ops of control flow: which of their outputs are alive, and in which iteration what they pass
// on arrives. They compute nothing, so the executor runs them itself.
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/execution.h"

namespace penstock {
namespace {

StatusOr<int> ChooseOutput(const Tensor& choice, uint32_t num_outputs) {
  if (choice.rank() != 0) {
    return InvalidArgument("the input that chooses the output must be a scalar, has shape ",
                           choice.shape().ToString());
  }
  if (choice.dtype() == DType::kBool) return choice.scalar<bool>() ? 1 : 0;
  const int32_t index = choice.scalar<int32_t>();  // of _SwitchN
  const int last = static_cast<int>(num_outputs) - 1;
  return index < 0 || index > last ? last : index;
}

}  // namespace

Status Execution::ComputeFlow(Iteration& it, const Item& item, Tensor* outputs) {
  Tensor* const inputs = &it.inputs[item.first_input];
  if (item.flow == FlowOp::kSwitch) {
    ASSIGN_OR_RETURN(const int taken, ChooseOutput(inputs[1], item.num_outputs));
    outputs[taken] = std::move(inputs[0]);
    return OkStatus();
  }
  uint32_t from = 0;
  if (item.flow == FlowOp::kMerge) {
    while (!inputs[from].valid()) ++from;
    // Most of them have no consumer for the index.
    if (item.num_edges > 0 && program_.edges()[item.first_edge + item.num_edges - 1].output == 1) {
      outputs[1] = Tensor::Scalar(static_cast<int32_t>(from));
    }
  } else if (item.flow == FlowOp::kLoopCond && inputs[0].rank() != 0) {
    return InvalidArgument("the condition of a loop must be a scalar, has shape ",
                           inputs[0].shape().ToString());
  }
  outputs[0] = std::move(inputs[from]);
  return OkStatus();
}

void Execution::RouteFlow(Iteration& it, const Item& item, Tensor* outputs, bool dead,
                          Ready& ready) {
  switch (item.flow) {
    case FlowOp::kEnter:
      return Enter(it, item, outputs, dead, ready);
    case FlowOp::kNextIteration:
      // What a dead value would begin never begins.
      return dead ? void() : NextIteration(it, item, outputs, ready);
    case FlowOp::kExit:
      // It is known to be dead for the loop as a whole when the loop ends.
      return dead ? void() : Exit(it, item, outputs, ready);
    default:
      return Propagate<false>(item, outputs, dead, it, ready);
  }
}

void Execution::Enter(Iteration& from, const Item& item, Tensor* outputs, bool dead, Ready& ready) {
  const FlowLock lock(*this);
  const Program::Detail& detail = program_.detail(item);
  Frame& frame = FrameOf(from, detail.loop);
  if (frame.oldest == nullptr) {
    // Until its last Enter has come the first iteration cannot end.
    BeginIteration(frame, ready);
  }
  if (detail.constant < 0) {
    Propagate<false>(item, outputs, dead, *frame.oldest, ready);
  } else {
    Tensor value = dead ? Tensor() : std::move(outputs[0]);
    for (Iteration* it = frame.oldest; it != nullptr; it = it->next) {
      if (!dead) outputs[0] = value;
      Propagate<false>(item, outputs, dead, *it, ready);
    }
    frame.constants[detail.constant] = {&item, std::move(value)};
  }
  if (--frame.enters_left == 0) LetGoLocked(frame.oldest, ready);
}

void Execution::NextIteration(Iteration& it, const Item& item, Tensor* outputs, Ready& ready) {
  const FlowLock lock(*this);
  Frame& frame = *it.frame;
  if (it.next == nullptr) {
    if (!frame.deferred.empty() || frame.in_flight >= frame.loop->parallel_iterations) {
      frame.deferred.push_back({&item, std::move(outputs[0])});
      return;
    }
    BeginIteration(frame, ready);
  }
  Propagate<false>(item, outputs, false, *it.next, ready);
}

void Execution::Exit(Iteration& it, const Item& item, Tensor* outputs, Ready& ready) {
  Frame& frame = *it.frame;
  {
    const FlowLock lock(*this);
    std::vector<bool>::reference left = frame.left[program_.detail(item).exit];
    if (!left) {
      left = true;
      return Propagate<false>(item, outputs, false, *frame.parent, ready);
    }
  }
  outputs[0] = Tensor();
  Fail(item, InvalidArgument("loop '", frame.loop->name, "' is left twice"));
}

// TensorFlow's words, and where it happened: the nearest Switch before the fetch.
Status Execution::DeadFetch(const Item& item) const {
  std::vector<const Node*> nodes = {item.node->input(0).node};
  std::vector<bool> seen(item.node->id() + 1);
  const Node* branch = nullptr;
  for (size_t i = 0; i < nodes.size() && branch == nullptr; ++i) {
    const OpDef& op = nodes[i]->op();
    if (op.flow == FlowOp::kSwitch || op.end == EndOp::kRecv) branch = nodes[i];
    const auto add = [&](const Node* input) {
      const auto id = static_cast<size_t>(input->id());
      if (id >= seen.size()) seen.resize(id + 1);
      if (!seen[id]) nodes.push_back(input);
      seen[id] = true;
    };
    for (const Endpoint& input : nodes[i]->inputs()) add(input.node);
    for (const Node* input : nodes[i]->control_inputs()) add(input);
  }
  const int64_t* const index = item.node->attr<int64_t>("index");
  return InvalidArgument(
      "Retval[", index == nullptr ? 0 : *index, "] does not have value: '",
      item.node->input(0).node->name(), "' lies on a branch not taken",
      branch == nullptr ? "" : StrCat(", behind '", branch->name(), "' (", branch->op_name(), ")"));
}

}  // namespace penstock

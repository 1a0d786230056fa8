// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/flow_nodes.h"

#include <utility>
#include <vector>

namespace penstock {
namespace {

StatusOr<int> ChooseOutput(const Tensor& choice, uint32_t num_outputs) {
  if (choice.rank() != 0) {
    return InvalidArgument("the input that chooses the output must be a scalar, but it has shape ",
                           choice.shape().ToString());
  }
  if (choice.dtype() == DType::kBool) return choice.scalar<bool>() ? 1 : 0;
  const int32_t index = choice.scalar<int32_t>();  // the choice of a _SwitchN
  const int last = static_cast<int>(num_outputs) - 1;
  return index < 0 || index > last ? last : index;
}

}  // namespace

Status ComputeFlow(Iteration& it, const Executable::Item& item, Tensor* outputs) {
  Tensor* const inputs = &it.inputs[item.first_input];
  if (item.flow == FlowOp::kSwitch) {
    ASSIGN_OR_RETURN(const int chosen, ChooseOutput(inputs[1], item.num_outputs));
    outputs[chosen] = std::move(inputs[0]);
    return OkStatus();
  }
  uint32_t from = 0;
  if (item.flow == FlowOp::kMerge) {
    while (!inputs[from].valid()) ++from;
    // Most Merges have no consumer for the index.
    const Executable::Edge* const edges = it.executable.edges() + item.first_edge;
    if (item.num_edges > 0 && edges[item.num_edges - 1].output == 1) {
      outputs[1] = Tensor::Scalar(static_cast<int32_t>(from));
    }
  } else if (item.flow == FlowOp::kLoopCond && inputs[0].rank() != 0) {
    return InvalidArgument("the condition of a loop must be a scalar, has shape ",
                           inputs[0].shape().ToString());
  }
  outputs[0] = std::move(inputs[from]);
  return OkStatus();
}

// Returns TensorFlow's message, with the location added: the nearest Switch or _Recv before the
// fetch.
Status DeadFetchError(const Node& fetch) {
  std::vector<const Node*> nodes = {fetch.input(0).node};
  std::vector<bool> seen(fetch.id() + 1);
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
  const int64_t* const index = fetch.attr<int64_t>("index");
  return InvalidArgument(
      "Retval[", index == nullptr ? 0 : *index, "] does not have value: '",
      fetch.input(0).node->name(), "' lies on a branch not taken",
      branch == nullptr ? "" : StrCat(", behind '", branch->name(), "' (", branch->op_name(), ")"));
}

}  // namespace penstock

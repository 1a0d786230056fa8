// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/buffer_sharing.h"

namespace penstock {
namespace {

using Kind = Sharing::Kind;

bool IsHandle(const Node& node, int output) { return node.output_type(output).refers_to_state(); }

bool ReadsThroughInput(const Node& node, int input) {
  return input < node.num_inputs() &&
         node.input(input).node->output_type(node.input(input).index).ref;
}

// Returns how an output shares memory if it passes on input `input`, or the value of the variable
// to which this input refers.
Sharing PassedOn(const Node& node, int input) {
  return {ReadsThroughInput(node, input) ? Kind::kState : Kind::kView, input};
}

}  // namespace

Sharing SharingOf(const Node& node, int output) {
  const OpDef& op = node.op();
  if (op.is_constant || op.end == EndOp::kFeed) return {Kind::kOutlivesStep};
  if (IsHandle(node, output)) {
    return node.num_inputs() > 0 ? Sharing{Kind::kState, 0} : Sharing{Kind::kOutlivesStep};
  }
  if (op.flow == FlowOp::kMerge) return output == 0 ? Sharing{Kind::kView, -1} : Sharing{};
  if (op.flow != FlowOp::kNone) return PassedOn(node, 0);
  if (op.is_view || op.passes_through) return PassedOn(node, output);
  if (output != 0) return {};
  if (op.reads_variable) return {Kind::kState, 0};
  if (op.reuses == Reuse::kNone) return {};
  return {Kind::kReuses, op.reuses == Reuse::kFirst ? 0 : -1};
}

bool Updates(const Node& node, int input) {
  const EdgeType type = node.input_type(input);
  if (!type.ref && type.dtype != DType::kResource) return false;
  const OpDef& op = node.op();
  return !op.only_reads && !op.reads_variable && op.flow == FlowOp::kNone && !op.passes_through;
}

}  // namespace penstock

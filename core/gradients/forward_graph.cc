// SPDX-License-Identifier: Apache-2.0
#include "core/gradients/forward_graph.h"

#include <algorithm>

#include "core/graph/flow_context.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"

namespace penstock {

StatusOr<std::unique_ptr<ForwardLoop>> ForwardLoop::Make(ForwardGraph& graph, int frame) {
  std::unique_ptr<ForwardLoop> loop(new ForwardLoop(graph, frame));
  RETURN_IF_ERROR(loop->Collect());
  return loop;
}

const LoopFrame& ForwardLoop::info() const { return graph_.frames().frames[frame_]; }

Status ForwardLoop::Collect() {
  const LoopFrames& frames = graph_.frames();
  for (Node* node : graph_.builder().graph().nodes()) {
    if (node->id() >= static_cast<int>(frames.of_node.size())) break;
    if (FlowOpOf(*node) == FlowOp::kEnter && frames.of_outputs[node->id()] == frame_) {
      const bool* const constant = node->attr<bool>("is_constant");
      if (constant != nullptr && *constant) invariants_.push_back(node);
      const bool* const swap = node->attr<bool>(kSwapMemoryAttr);
      swap_memory_ |= swap != nullptr && *swap;
    }
    if (frames.of_node[node->id()] != frame_ || FlowOpOf(*node) != FlowOp::kMerge) continue;
    for (const Endpoint& input : node->inputs()) {
      if (!IsLoopBackEdge(*input.node, *node)) continue;
      RETURN_IF_ERROR(CollectVariable(node));
      break;
    }
  }
  if (info().loop_cond != nullptr && !variables_.empty()) return OkStatus();
  return Unimplemented("gradients: loop '", info().name, "' has no condition, or no variable");
}

Status ForwardLoop::CollectVariable(Node* merge) {
  LoopVariable variable{.merge = merge};
  for (const Endpoint& input : merge->inputs()) {
    (IsLoopBackEdge(*input.node, *merge) ? variable.next : variable.enter) = input.node;
  }
  for (const OutEdge& edge : merge->out_edges()) {
    if (edge.src_index != 0 || edge.dst_index != 0 || FlowOpOf(*edge.dst) != FlowOp::kSwitch) {
      continue;
    }
    if (edge.dst->input(1).node == info().loop_cond) variable.branch = edge.dst;
  }
  if (variable.enter == nullptr || FlowOpOf(*variable.enter) != FlowOp::kEnter ||
      merge->num_inputs() != 2 || variable.branch == nullptr) {
    return Unimplemented("gradients: the variable of loop '", info().name, "' at '", merge->name(),
                         "' is not of the form Enter, Merge, Switch, NextIteration");
  }
  for (const OutEdge& edge : variable.branch->out_edges()) {
    if (edge.src_index == 0 && FlowOpOf(*edge.dst) == FlowOp::kExit) {
      variable.exits.push_back(edge.dst);
    }
  }
  variables_.push_back(std::move(variable));
  return OkStatus();
}

Output ForwardLoop::Anchor() {
  if (anchor_.valid()) return anchor_;
  const Endpoint source = variables_[0].enter->input(0);
  const Output initial = graph_.builder().OutputOf(source.node, source.index);
  const auto bare_scope = graph_.builder().BareScope();
  return anchor_ = graph_.Record(Identity(initial), info().parent, initial);
}

Output ForwardLoop::Enter(Output value, bool is_constant) {
  if (!value.valid()) return value;
  const Output entered = Call("Enter", {value},
                              {{"frame_name", info().name},
                               {"is_constant", is_constant},
                               {"parallel_iterations", info().parallel_iterations}});
  return graph_.Record(entered, frame_, {});
}

Output ForwardLoop::ExitOf(LoopVariable& variable) {
  GraphBuilder& builder = graph_.builder();
  if (variable.exits.empty()) {
    const Output last = builder.OutputOf(variable.branch, 0);
    const auto bare_scope = builder.BareScope();
    const Output exit = Call(FlowOpName("Exit", last), {last});
    if (!exit.valid()) return exit;
    variable.exits.push_back(builder.NodeOf(graph_.Record(exit, info().parent, Anchor())));
  }
  return builder.OutputOf(variable.exits[0]);
}

void ForwardLoop::AddCounter() {
  GraphBuilder& builder = graph_.builder();
  const Output anchor = Anchor();
  const auto bare_scope = builder.BareScope();
  Output zero, one;
  {
    const auto loop_condition_scope = builder.ControlDependencies({anchor});
    zero = Constant(builder, Tensor::Scalar<int32_t>(0));
    one = Constant(builder, Tensor::Scalar<int32_t>(1));
  }
  const Output start = Enter(zero, /*is_constant=*/false);
  const Output number = CallN("Merge", {Outputs{start, start}})[0];
  const Output cond = builder.OutputOf(info().loop_cond);
  const Outputs sides = AddSwitch(number, cond);
  next_number_ = Call("AddV2", {sides[1], Enter(one, /*is_constant=*/true)});
  next_ = Call("NextIteration", {next_number_});
  count_ = graph_.Record(Call("Exit", {sides[0]}), info().parent, anchor);
  if (!builder.status().ok()) return;
  const Status closed =
      builder.mutable_graph().SetInput(builder.NodeOf(number), 1, {builder.NodeOf(next_), 0});
  if (!closed.ok()) builder.Fail(closed);
}

Output ForwardLoop::Count() {
  if (!count_.valid()) AddCounter();
  return count_;
}

Output ForwardLoop::NewStack(Output value) {
  GraphBuilder& builder = graph_.builder();
  const Output anchor = Anchor();
  const auto bare_scope = builder.BareScope();
  const auto colocation_scope = builder.ColocateWith(value);
  const auto loop_condition_scope = builder.ControlDependencies({anchor});
  const Output no_limit = Constant(builder, Tensor::Scalar<int32_t>(-1));
  const Output stack = CallIn(builder, "StackV2", {no_limit}, {{"elem_type", value.dtype()}});
  return graph_.Record(stack, info().parent, anchor);
}

Output ForwardLoop::StackOf(Output value) {
  Output& stack = stacks_[{value.node, value.index}];
  if (stack.valid()) return stack;
  GraphBuilder& builder = graph_.builder();
  Count();
  stack = NewStack(value);
  const auto bare_scope = builder.BareScope();
  const auto colocation_scope = builder.ColocateWith(value);
  const Output handle = Enter(stack, /*is_constant=*/true);
  // The push of an iteration runs after that of the iteration before, because the next iteration's
  // number waits for all pushes of this iteration, and each push waits for the number of its
  // iteration.
  const auto order_scope = builder.ControlDependencies({next_number_});
  const Output push =
      CallIn(builder, "StackPushV2", {handle, value}, {{"swap_memory", swap_memory_}});
  if (!builder.status().ok()) return stack;
  Graph& graph = builder.mutable_graph();
  if (pushed_ == nullptr) {
    // The node must run in every iteration, even if a push is on an untaken side and does not run.
    const auto alone_scope = builder.BareScope();
    const auto after = builder.ControlDependencies({push});
    const Output all = CallIn(builder, "ControlTrigger", {});
    if (!all.valid()) return stack;
    pushed_ = builder.NodeOf(all);
    graph.AddControlEdge(pushed_, builder.NodeOf(next_));
  } else {
    graph.AddControlEdge(builder.NodeOf(push), pushed_);
  }
  return stack;
}

StatusOr<std::unique_ptr<ForwardGraph>> ForwardGraph::Analyze(GraphBuilder& builder) {
  std::unique_ptr<ForwardGraph> graph(new ForwardGraph(builder));
  ASSIGN_OR_RETURN(graph->frames_, FindLoopFrames(builder.graph()));
  ASSIGN_OR_RETURN(graph->branches_, Branches::Find(builder.graph(), graph->frames_));
  return graph;
}

int ForwardGraph::FrameOf(Output output) const {
  if (output.node < static_cast<int>(frames_.of_outputs.size())) {
    return frames_.of_outputs[output.node];
  }
  const auto it = added_.find(output.node);
  return it == added_.end() ? -1 : it->second;
}

bool ForwardGraph::Encloses(int frame, int inner) const {
  while (inner > frame) inner = frames_.frames[inner].parent;  // parents have lower numbers
  return inner == frame;
}

Output ForwardGraph::Record(Output output, int frame, Output like) {
  if (!output.valid()) return output;
  added_[output.node] = frame;
  if (like.valid()) {
    branches_.Record({builder_.NodeOf(output), output.index}, {builder_.NodeOf(like), like.index});
  }
  if (frame == base_frame_ && base_context_ != nullptr) base_context_->Added(output.node);
  return output;
}

StatusOr<ForwardLoop*> ForwardGraph::Loop(int frame) {
  std::unique_ptr<ForwardLoop>& loop = loops_[frame];
  if (loop == nullptr) {
    ASSIGN_OR_RETURN(loop, ForwardLoop::Make(*this, frame));
  }
  return loop.get();
}

Output ForwardGraph::PivotOf(const Branch& branch) {
  const Output predicate = builder_.OutputOf(branch.predicate.node, branch.predicate.index);
  Output& pivot = pivots_[{builder_.context(), {{predicate.node, predicate.index}, branch.side}}];
  if (!pivot.valid()) {
    const auto unordered = builder_.ClearControlDependencies();
    pivot = Identity(AddSwitch(predicate, predicate)[branch.side]);
  }
  return pivot;
}

}  // namespace penstock

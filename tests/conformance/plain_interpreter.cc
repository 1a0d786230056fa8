// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/plain_interpreter.h"

#include <algorithm>

#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/op/kernel.h"
#include "core/op/registry.h"

namespace penstock {
namespace {

std::string KeyOf(const Node& node) {
  const auto part = [&](const char* attr) { return *node.attr<std::string>(attr); };
  return StrCat(part("send_device"), ";", part("recv_device"), ";", part("tensor_name"));
}

size_t IndexOf(const Node& node) { return static_cast<size_t>(*node.attr<int64_t>("index")); }

}  // namespace

PlainInterpreter::PlainInterpreter() : variables_(std::make_shared<ResourceStore>()) {}

StatusOr<std::vector<Tensor>> PlainInterpreter::Run(const Graph& program,
                                                    const std::map<std::string, Tensor>& feeds,
                                                    const std::vector<std::string>& fetches) {
  Step step;
  step.by_name = feeds;
  RETURN_IF_ERROR(RunAll({&program}, &step));
  std::vector<Tensor> fetched;
  for (const std::string& fetch : fetches) {
    ASSIGN_OR_RETURN(const TensorName name, TensorName::Parse(fetch));
    const Node* const node = program.FindNode(name.node);
    if (node == nullptr) return NotFound("fetch '", fetch, "'");
    const auto found = step.values.find({node, name.index});
    if (found == step.values.end() || !found->second) return NotFound("no value of '", fetch, "'");
    fetched.push_back(*found->second);
  }
  return fetched;
}

StatusOr<std::vector<Tensor>> PlainInterpreter::Run(const std::vector<const Graph*>& partitions,
                                                    const std::vector<Tensor>& feeds,
                                                    int num_fetches) {
  Step step;
  step.feeds = feeds;
  step.fetches.resize(num_fetches);
  RETURN_IF_ERROR(RunAll(partitions, &step));
  return step.fetches;
}

Status PlainInterpreter::RunAll(const std::vector<const Graph*>& graphs, Step* step) {
  std::vector<const Node*> left;
  for (const Graph* graph : graphs) {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
    left.insert(left.end(), order.begin(), order.end());
  }
  while (!left.empty()) {
    std::vector<const Node*> waiting;
    for (const Node* node : left) {
      if (!IsReady(*node, *step)) {
        waiting.push_back(node);
      } else {
        RETURN_IF_ERROR(Annotate(RunNode(*node, step), node->name()));
      }
    }
    if (waiting.size() == left.size()) {
      return Internal("'", left.front()->name(), "' waits for something that never comes");
    }
    left = std::move(waiting);
  }
  return OkStatus();
}

bool PlainInterpreter::IsReady(const Node& node, const Step& step) {
  const auto ended = [&](const Node* before) { return step.ended.contains(before); };
  return std::ranges::all_of(node.control_inputs(), ended) &&
         std::ranges::all_of(node.inputs(), [&](const Endpoint& in) { return ended(in.node); }) &&
         (node.op().end != EndOp::kRecv || step.sent.contains(KeyOf(node)));
}

Status PlainInterpreter::RunNode(const Node& node, Step* step) {
  std::vector<Value> inputs;
  bool dead = false, any = false;
  for (const Endpoint& in : node.inputs()) {
    inputs.push_back(step->values.at({in.node, in.index}));
    dead = dead || !inputs.back();
    any = any || inputs.back();
  }
  if (node.op().flow == FlowOp::kMerge) dead = !any;
  for (const Node* before : node.control_inputs()) dead = dead || step->ended.at(before);
  ASSIGN_OR_RETURN(std::vector<Value> outputs, Outputs(node, std::move(inputs), dead, step));
  outputs.resize(node.num_outputs());
  for (int i = 0; i < node.num_outputs(); ++i) {
    const auto fed = step->by_name.find(StrCat(node.name(), ":", i));
    step->values[{&node, i}] = fed == step->by_name.end() ? outputs[i] : Value(fed->second);
  }
  const bool received_dead =
      node.op().end == EndOp::kRecv && node.num_outputs() > 0 && !outputs[0].has_value();
  step->ended[&node] = dead || received_dead;
  return OkStatus();
}

StatusOr<std::vector<PlainInterpreter::Value>> PlainInterpreter::Outputs(const Node& node,
                                                                         std::vector<Value> inputs,
                                                                         bool dead, Step* step) {
  const OpDef& op = node.op();
  if (op.end == EndOp::kSend) {
    step->sent[KeyOf(node)] = dead ? Value() : inputs[0];
    return std::vector<Value>();
  }
  if (op.end == EndOp::kRecv) return std::vector<Value>{step->sent.at(KeyOf(node))};
  if (dead) return std::vector<Value>(node.num_outputs());
  if (op.end == EndOp::kFeed) return std::vector<Value>{step->feeds.at(IndexOf(node))};
  if (op.end == EndOp::kFetch) {
    step->fetches.at(IndexOf(node)) = *inputs[0];
    return std::vector<Value>();
  }
  if (op.is_placeholder) return std::vector<Value>(node.num_outputs(), Tensor::Scalar<float>(0));
  if (op.name == "_SwapOut" || op.name == "_SwapIn") return inputs;
  if (op.flow == FlowOp::kSwitch) {
    std::vector<Value> branches(2);
    branches[inputs[1]->scalar<bool>() ? 1 : 0] = inputs[0];
    return branches;
  }
  if (op.flow == FlowOp::kMerge) {
    const auto taken = std::ranges::find_if(inputs, [](const Value& in) { return in.has_value(); });
    return std::vector<Value>{
        *taken, Tensor::Scalar<int32_t>(static_cast<int32_t>(taken - inputs.begin()))};
  }
  if (op.flow != FlowOp::kNone) return Unimplemented("loops");
  return RunKernel(node, inputs, step);
}

StatusOr<std::vector<PlainInterpreter::Value>> PlainInterpreter::RunKernel(
    const Node& node, const std::vector<Value>& inputs, Step* step) {
  const std::string device = "/job:localhost/replica:0/task:0/device:CPU:0";
  ASSIGN_OR_RETURN(const auto kernel,
                   Registry::Global().MakeKernel("CPU", {.name = node.name(),
                                                         .op = node.op(),
                                                         .attrs = node.attrs(),
                                                         .device = device,
                                                         .input_types = node.input_types(),
                                                         .output_types = node.output_types()}));
  if (kernel->AsAsync() != nullptr) return Unimplemented(node.op_name(), " is asynchronous");
  std::vector<Tensor> in, out(node.num_outputs());
  for (const Value& input : inputs) in.push_back(*input);
  Cancellation cancellation;
  StepContext context_of_step = {.step_id = 1,
                                 .resources = variables_.get(),
                                 .step_resources = &step->resources,
                                 .cancellation = &cancellation,
                                 .threads = &threads_,
                                 .env = &Env::Real()};
  KernelContext context(KernelContext::Params{.step = &context_of_step,
                                              .node_name = &node.name(),
                                              .device_name = &device,
                                              .allocator = &CpuAllocator(),
                                              .host_allocator = &CpuAllocator(),
                                              .inputs = in.data(),
                                              .outputs = out.data(),
                                              .output_types = node.output_types().data(),
                                              .num_inputs = static_cast<int>(in.size()),
                                              .num_outputs = static_cast<int>(out.size())});
  RETURN_IF_ERROR(kernel->Compute(context));
  return std::vector<Value>(out.begin(), out.end());
}

}  // namespace penstock

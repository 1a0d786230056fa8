// SPDX-License-Identifier: Apache-2.0
//
// What happens to a node: prepare, compute, release its inputs, pass its outputs on. Kernels that
// end at once and kernels that end later share everything from CheckOutputs on.
#include <exception>
#include <new>
#include <utility>

#include "core/runtime/execution.h"

namespace penstock {
namespace {

// Puts `value` where there is none, without the cost of looking for what was there before.
void Fill(Tensor* empty, Tensor&& value) { std::construct_at(empty, std::move(value)); }
void Fill(Tensor* empty, const Tensor& value) { std::construct_at(empty, value); }

void Empty(Tensor* tensor) {
  std::destroy_at(tensor);
  std::construct_at(tensor);
}

void EmptyAll(Tensor* tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) Empty(&tensors[i]);
}

// A kernel is not supposed to throw, but a standard container does when memory runs out, and one
// graph must not take the process with it.
Status CallKernel(Kernel& kernel, KernelContext& context) {
  try {
    return kernel.Compute(context);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory");
  } catch (const std::exception& e) {
    return Internal("the kernel threw: ", e.what());
  }
}

}  // namespace

void Execution::Process(Runner& runner, uint32_t node) {
  if ((node & kDead) != 0) return ProcessSpecial(runner, node);
  const Item& item = program_.item(node);
  Tensor* const outputs = runner.outputs.get();
  if (item.special == Program::kNoOp && ready_ns_ == nullptr) {
    return Propagate<true>(item, outputs, false, runner.ready);
  }
  if (item.special != 0 || observed_) return ProcessSpecial(runner, node);
  const Status status = Compute(item, &runner.params, outputs);
  if (!status.ok()) [[unlikely]] {
    EmptyAll(outputs, item.num_outputs);
    return Fail(item, status);
  }
  ReleaseInputs(item);
  Propagate<true>(item, outputs, false, runner.ready);
}

void Execution::ProcessSpecial(Runner& runner, uint32_t node) {
  const Item& item = program_.item(node & ~kDead);
  const bool dead = (node & kDead) != 0 && (item.special & Program::kRunsDead) == 0;
  const int64_t start_ns = observed_ ? options_.env->NowNanos() : 0;
  Tensor* const outputs = runner.outputs.get();
  Status status;
  if (!dead && (item.special & Program::kNoOp) == 0) {
    if ((item.special & Program::kReadsVariables) != 0) status = ReadVariables(item);
    if (status.ok() && (item.special & Program::kCopiesInputs) != 0 && !CopyInputs(item)) return;
    if (status.ok() && (item.special & Program::kAsync) != 0) return StartAsync(item, start_ns);
    if (status.ok()) status = Compute(item, &runner.params, outputs);
  }
  if (!status.ok()) {
    EmptyAll(outputs, item.num_outputs);
    return Fail(item, status);
  }
  if (observed_ && !dead) Observe(item, start_ns, outputs);
  ReleaseInputs(item);
  Propagate<false>(item, outputs, dead, runner.ready);
}

Status Execution::Compute(const Item& item, KernelContext::Params* params, Tensor* outputs) {
  params->node_name = &item.node->name();
  params->inputs = &root_.inputs[item.first_input];
  params->outputs = outputs;
  params->output_types = item.node->output_types().data();
  params->num_inputs = static_cast<int>(item.num_inputs);
  params->num_outputs = static_cast<int>(item.num_outputs);
  params->output_on_host = (item.special & Program::kHostOutputs) != 0
                               ? program_.detail(item).output_on_host.get()
                               : nullptr;
  KernelContext context(*params);
  Status status = CallKernel(*item.kernel, context);
  if (!status.ok()) return status;
  return CheckOutputs(item, outputs);
}

Status Execution::CheckOutputs(const Item& item, const Tensor* outputs) const {
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    const DType found = outputs[i].dtype();
    if (found == item.output_dtypes[i]) continue;
    if (found != DType::kInvalid) {
      return Internal("the kernel of ", item.node->op_name(), " produced output ", i, " as ",
                      Name(found), ", the graph says ", Name(item.output_dtypes[i]));
    }
    if ((item.special & Program::kMayBeDead) == 0) {
      return Internal("the kernel of ", item.node->op_name(), " did not set output ", i);
    }
  }
  return OkStatus();
}

void Execution::StartAsync(const Item& item, int64_t start_ns) {
  if (!RegisterAbort()) {  // cancelled: the node is dropped
    stopped_.store(true, std::memory_order_relaxed);
    return;
  }
  const Program::Detail& detail = program_.detail(item);
  Wait& wait = waits_[detail.wait];
  AddActive();
  wait.start_ns = start_ns;
  wait.in_flight.store(true, std::memory_order_relaxed);
  wait.context.emplace(KernelContext::Params{
      .step = &step_,
      .node_name = &item.node->name(),
      .device_name = &device_.name(),
      .allocator = &device_.allocator(),
      .host_allocator = &CpuAllocator(),
      .stream = device_.stream(),
      .device_handles = device_.kernel_handles(),
      .inputs = &root_.inputs[item.first_input],
      .outputs = wait.outputs.get(),
      .output_types = item.node->output_types().data(),
      .output_on_host = detail.output_on_host.get(),
      .num_inputs = static_cast<int>(item.num_inputs),
      .num_outputs = static_cast<int>(item.num_outputs),
  });
  detail.async->ComputeAsync(
      *wait.context, Done([this, &item](const Status& status) { AsyncEnded(item, status); }));
}

void Execution::AsyncEnded(const Item& item, const Status& ended) {
  Wait& wait = waits_[program_.detail(item).wait];
  wait.in_flight.store(false, std::memory_order_relaxed);
  Tensor* const outputs = wait.outputs.get();
  const Status status = ended.ok() ? CheckOutputs(item, outputs) : ended;
  if (!status.ok()) {
    EmptyAll(outputs, item.num_outputs);
    Fail(item, status);
    return Leave(/*from_runner=*/false);
  }
  if (observed_) Observe(item, wait.start_ns, outputs);
  ReleaseInputs(item);
  const bool dead = item.num_outputs > 0 && !outputs[0].valid();
  if (Ready* const here = ReadyHere(); here != nullptr) {
    Propagate<false>(item, outputs, dead, *here);
  } else {
    static thread_local Ready ready;  // keeps its memory
    Propagate<false>(item, outputs, dead, ready);
    ready.cheap.insert(ready.cheap.end(), ready.expensive.begin(), ready.expensive.end());
    if (!ready.cheap.empty()) Share(ready.cheap);
    ready.cheap.clear();
    ready.expensive.clear();
  }
  Leave(/*from_runner=*/false);
}

// Before the outputs go on: a consumer may write to a buffer that a kernel has passed through.
void Execution::ReleaseInputs(const Item& item) {
  EmptyAll(&root_.inputs[item.first_input], item.num_inputs);
}

// kPlain: every output has a value, and nobody asks when nodes become ready.
template <bool kPlain>
void Execution::Propagate(const Item& item, Tensor* outputs, bool dead, Ready& ready) {
  const Program::Edge* edge = program_.edges() + item.first_edge;
  for (const auto* const end = edge + item.num_edges; edge != end; ++edge) {
    if (!kPlain && (dead || !outputs[edge->output].valid())) {
      Arrive<kPlain>(edge->dst, true, ready);
      continue;
    }
    Tensor* const slot = &root_.inputs[edge->slot];
    if (edge->last) {
      Fill(slot, std::move(outputs[edge->output]));
    } else {
      Fill(slot, outputs[edge->output]);
    }
    Arrive<kPlain>(edge->dst, false, ready);
  }
  if (item.drops_output) EmptyAll(outputs, item.num_outputs);
  const uint32_t* control = program_.controls() + item.first_control;
  for (const auto* const end = control + item.num_controls; control != end; ++control) {
    Arrive<kPlain>(*control, dead, ready);
  }
}

template <bool kPlain>
void Execution::Arrive(uint32_t node, bool dead, Ready& ready) {
  std::atomic<uint32_t>& pending = root_.pending[node];
  uint32_t left;
  if (shared_) {
    if (!kPlain && dead) pending.fetch_or(kDead, std::memory_order_relaxed);
    left = pending.fetch_sub(1, std::memory_order_acq_rel) - 1;
  } else {
    left = pending.load(std::memory_order_relaxed) - 1;
    if (!kPlain && dead) left |= kDead;
    pending.store(left, std::memory_order_relaxed);
  }
  if ((left & Program::kCount) != 0) return;
  if (!kPlain && ready_ns_ != nullptr) ready_ns_[node] = options_.env->NowNanos();
  const bool expensive = (left & Program::kExpensive) != 0;
  (expensive ? ready.expensive : ready.cheap).push_back(node | (left & kDead));
}

}  // namespace penstock

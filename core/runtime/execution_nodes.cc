// SPDX-License-Identifier: Apache-2.0
//
// What happens to a node: prepare, compute, release its inputs, pass its outputs on. Kernels that
// end at once and kernels that end later share everything from CheckOutputs on.
#include <utility>

#include "core/base/guarded.h"
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

}  // namespace

// These two are inlined: calls and their frames are a good part of what a cheap node costs.

template <bool kPlain>
[[gnu::always_inline]] inline void Execution::Arrive(Iteration& it, uint32_t node, bool dead,
                                                     Ready& ready) {
  std::atomic<uint32_t>& pending = it.pending[node];
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
  if (!kPlain) return Push(it, node | (left & ~Program::kCount), ready);
  const bool expensive = (left & Program::kExpensive) != 0;
  (expensive ? ready.expensive : ready.cheap).push_back(node | (left & kDead));
}

// To the iteration in which the consumers run. kPlain: that is where the thread works, every output
// has a value, no consumer is a Merge, and nobody asks when nodes become ready.
template <bool kPlain>
[[gnu::always_inline]] inline void Execution::Propagate(const Item& item, Tensor* outputs,
                                                        bool dead, Iteration& to, Ready& ready) {
  const Program::Edge* edge = program_.edges() + item.first_edge;
  for (const auto* const end = edge + item.num_edges; edge != end; ++edge) {
    Tensor* const output = !kPlain && dead ? nullptr : &outputs[edge->output];
    if (!kPlain && edge->merges) {
      ArriveAtMerge(to, *edge, output, ready);
      continue;
    }
    if (!kPlain && (output == nullptr || !output->valid())) {
      Arrive<kPlain>(to, edge->dst, true, ready);
      continue;
    }
    Tensor* const slot = &to.inputs[edge->slot];
    if (edge->last) {
      Fill(slot, std::move(*output));
    } else {
      Fill(slot, *output);
    }
    Arrive<kPlain>(to, edge->dst, false, ready);
  }
  if (kPlain ? item.drops_output : !dead && item.may_drop()) {
    EmptyAll(outputs, item.num_outputs);
  }
  const uint32_t* control = program_.controls() + item.first_control;
  for (const auto* const end = control + item.num_controls; control != end; ++control) {
    if (!kPlain && (to.items[*control].special & Program::kMerges) != 0) {
      ArriveAtMerge(to, *control, Program::kControl, ready);
    } else {
      Arrive<kPlain>(to, *control, dead, ready);
    }
  }
}

template void Execution::Propagate<false>(const Item&, Tensor*, bool, Iteration&, Ready&);

void Execution::Process(Runner& runner, uint32_t node) {
  if ((node & kDead) != 0) return ProcessSpecial(runner, node);
  Iteration& it = *runner.ready.here;
  const Item& item = it.items[node];
  Tensor* const outputs = runner.outputs.get();
  if (item.special != Program::kNoOp || it.ready_ns != nullptr) {
    if (item.special != 0 || observed_) return ProcessSpecial(runner, node);
    const Status status = Compute(item, runner, outputs);
    if (!status.ok()) [[unlikely]] {
      EmptyAll(outputs, item.num_outputs);
      return Fail(item, status);
    }
    ReleaseInputs(it, item);
  }
  Propagate<true>(item, outputs, false, it, runner.ready);
}

void Execution::ProcessSpecial(Runner& runner, uint32_t node) {
  Iteration& it = *runner.ready.here;
  const Item& item = it.items[node & ~kDead];
  const uint32_t special = item.special;
  const bool dead = (node & kDead) != 0 && (special & Program::kRunsDead) == 0;
  const int64_t start_ns = observed_ ? options_.env->NowNanos() : 0;
  Tensor* const outputs = runner.outputs.get();
  Status status;
  if (dead) {
    if ((special & Program::kFetch) != 0) status = DeadFetch(item);
  } else if ((special & Program::kCommits) != 0) {
    committed_.store(true, std::memory_order_relaxed);
  } else if ((special & Program::kNoOp) == 0) {
    if ((special & Program::kReadsVariables) != 0) status = ReadVariables(it, item);
    if (status.ok() && (special & Program::kCopiesInputs) != 0 && !CopyInputs(it, item)) return;
    if (status.ok() && (special & Program::kAsync) != 0) return StartAsync(it, item, start_ns);
    if (status.ok()) {
      status = (special & Program::kFlow) != 0 ? ComputeFlow(it, item, outputs)
               : args_.stats != nullptr        ? ComputeRecorded(item, runner, outputs)
                                               : Compute(item, runner, outputs);
    }
  }
  if (!status.ok()) {
    EmptyAll(outputs, item.num_outputs);
    return Fail(item, status);
  }
  if (observed_ && !dead) Observe(it, item, start_ns, outputs, std::exchange(runner.memory, {}));
  ReleaseInputs(it, item);
  if (item.flow > FlowOp::kMerge) return RouteFlow(it, item, outputs, dead, runner.ready);
  Propagate<false>(item, outputs, dead, it, runner.ready);
}

Status Execution::Compute(const Item& item, Runner& runner, Tensor* outputs) {
  KernelContext::Params& params = runner.params;
  params.node_name = &item.node->name();
  params.inputs = &runner.ready.here->inputs[item.first_input];
  params.outputs = outputs;
  params.output_types = item.node->output_types().data();
  params.num_inputs = static_cast<int>(item.num_inputs);
  params.num_outputs = static_cast<int>(item.num_outputs);
  params.output_on_host = (item.special & Program::kHostOutputs) != 0
                              ? program_.detail(item).output_on_host.get()
                              : nullptr;
  KernelContext context(params);
  Status status = Guarded([&] { return item.kernel->Compute(context); });
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

void Execution::StartAsync(Iteration& it, const Item& item, int64_t start_ns) {
  if (!RegisterAbort()) {  // cancelled: the node is dropped
    stopped_.store(true, std::memory_order_relaxed);
    return;
  }
  const Program::Detail& detail = program_.detail(item);
  Wait& wait = it.waits[detail.wait];
  AddActive();
  Hold(it, 1);
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
      .inputs = &it.inputs[item.first_input],
      .outputs = wait.outputs.get(),
      .output_types = item.node->output_types().data(),
      .output_on_host = detail.output_on_host.get(),
      .num_inputs = static_cast<int>(item.num_inputs),
      .num_outputs = static_cast<int>(item.num_outputs),
      .frame = it.frame == nullptr ? 0 : it.frame->id,
      .iteration = it.number,
  });
  detail.async->ComputeAsync(*wait.context, Done([&wait](const Status& status) {
    wait.execution->AsyncEnded(wait, status);
  }));
}

void Execution::AsyncEnded(Wait& wait, const Status& ended) {
  const Item& item = *wait.item;
  Iteration& it = *wait.iteration;
  wait.in_flight.store(false, std::memory_order_relaxed);
  Tensor* const outputs = wait.outputs.get();
  const Status status = ended.ok() ? CheckOutputs(item, outputs) : ended;
  if (!status.ok()) {
    EmptyAll(outputs, item.num_outputs);
    Fail(item, status);
    return Leave(/*from_runner=*/false);
  }
  if (observed_) {
    std::vector<NodeStats::Memory> memory;
    if (args_.stats != nullptr) memory = NewOutputs(it, item, outputs);
    Observe(it, item, wait.start_ns, outputs, std::move(memory));
  }
  ReleaseInputs(it, item);
  const bool dead = item.num_outputs > 0 && !outputs[0].valid();
  if (Ready* const here = ReadyHere(); here != nullptr) {
    Propagate<false>(item, outputs, dead, it, *here);
    Release(it, *here);
  } else {
    static thread_local Ready ready;  // keeps its memory; nowhere is here
    Propagate<false>(item, outputs, dead, it, ready);
    Release(it, ready);
    if (!ready.elsewhere.empty()) Share(ready.elsewhere);
    ready.elsewhere.clear();
  }
  Leave(/*from_runner=*/false);
}

// Before the outputs go on: a consumer may write to a buffer that a kernel has passed through.
void Execution::ReleaseInputs(Iteration& it, const Item& item) {
  EmptyAll(&it.inputs[item.first_input], item.num_inputs);
}

// The first value that comes is taken, others are dropped. `value`: null or invalid where dead.
void Execution::ArriveAtMerge(Iteration& it, const Program::Edge& edge, Tensor* value,
                              Ready& ready) {
  if (value == nullptr || !value->valid()) return ArriveAtMerge(it, edge.dst, 1, ready);
  std::atomic<uint32_t>& pending = it.pending[edge.dst];
  const uint32_t before = pending.fetch_or(Program::kClaimed, std::memory_order_relaxed);
  if ((before & Program::kClaimed) != 0) return;
  Fill(&it.inputs[edge.slot], edge.last ? std::move(*value) : Tensor(*value));
  ArriveAtMerge(it, edge.dst, 0u - Program::kAlive, ready);
}

void Execution::ArriveAtMerge(Iteration& it, uint32_t node, uint32_t change, Ready& ready) {
  const uint32_t before = it.pending[node].fetch_sub(change, std::memory_order_acq_rel);
  const uint32_t after = before - change;
  if (Program::MergeReady(before) || !Program::MergeReady(after)) return;
  Push(it, node | ((after & Program::kAlive) == 0 ? kDead : 0), ready);
}

void Execution::Push(Iteration& it, uint32_t node, Ready& ready) {
  if (it.ready_ns != nullptr) it.ready_ns[node & Program::kCount] = options_.env->NowNanos();
  if (&it != ready.here) {
    Hold(it, 1);
    ready.elsewhere.push_back({&it, node});
    return;
  }
  const bool expensive = (node & Program::kExpensive) != 0;
  (expensive ? ready.expensive : ready.cheap).push_back(node & ~Program::kExpensive);
}

}  // namespace penstock

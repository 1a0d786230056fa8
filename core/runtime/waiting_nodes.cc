// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/waiting_nodes.h"

#include "core/runtime/node_stats.h"
#include "core/runtime/node_values.h"

namespace penstock {

void WaitingNodes::StartAsync(Iteration& it, const Executable::Item& item, int64_t start_ns) {
  if (!step_.RegisterAbort()) return step_.DropNodes();
  const Executable::Detail& detail = executable_.detail(item);
  NodeWait& wait = it.waits[detail.wait];
  threads_.AddActive();
  it.Hold(1, step_.shared());
  wait.start_ns = start_ns;
  wait.since_ns.store(start_ns != 0 ? start_ns : step_.NowNanos(), std::memory_order_relaxed);
  wait.in_flight.store(true, std::memory_order_relaxed);
  KernelContext::Params params = step_.KernelParams();
  params.node_name = &item.node->name();
  params.inputs = &it.inputs[item.first_input];
  params.outputs = wait.outputs.get();
  params.output_types = item.node->output_types().data();
  params.output_on_host = detail.output_on_host.get();
  params.num_inputs = static_cast<int>(item.num_inputs);
  params.num_outputs = static_cast<int>(item.num_outputs);
  params.frame = it.frame_id;
  params.iteration = it.number;
  wait.context.emplace(params);
  detail.async->ComputeAsync(
      *wait.context, Done([this, &wait](const Status& status) { AsyncEnded(wait, status); }));
}

void WaitingNodes::AsyncEnded(NodeWait& wait, const Status& ended) {
  const Executable::Item& item = *wait.item;
  Iteration& it = *wait.iteration;
  wait.in_flight.store(false, std::memory_order_relaxed);
  Tensor* const outputs = wait.outputs.get();
  const Status status = ended.ok() ? CheckOutputs(item, outputs) : ended;
  if (!status.ok()) {
    EmptyAll(outputs, item.num_outputs);
    step_.Fail(*item.node, status);
    return threads_.Leave();
  }
  if (step_.observed()) {
    std::vector<NodeStats::Memory> memory;
    if (step_.traced()) memory = NewOutputs(it, item, outputs);
    RecordNode(step_, it, item, wait.start_ns, outputs, std::move(memory));
  }
  ReleaseInputs(it, item);
  PassOutputsOn(wait);
  threads_.Leave();
}

void WaitingNodes::PassOutputsOn(NodeWait& wait) {
  const Executable::Item& item = *wait.item;
  Iteration& it = *wait.iteration;
  Tensor* const outputs = wait.outputs.get();
  const bool dead = item.num_outputs > 0 && !outputs[0].valid();
  if (ReadyQueues* const here = threads_.ReadyHere(); here != nullptr) {
    propagation_.PassInline<false>(item, outputs, dead, it, *here);
    return loops_.Release(it, *here);
  }
  static thread_local ReadyQueues
      ready;  // thread_local, so that the vectors keep their capacity; `here` stays null
  propagation_.PassInline<false>(item, outputs, dead, it, ready);
  loops_.Release(it, ready);
  if (!ready.other_iterations.empty()) threads_.Share(ready.other_iterations);
  ready.other_iterations.clear();
}

bool WaitingNodes::CopyInputs(Iteration& it, const Executable::Item& item) {
  const Executable::Detail& detail = executable_.detail(item);
  Tensor* const inputs = &it.inputs[item.first_input];
  if (detail.wait < 0) {
    for (const uint32_t i : detail.inputs_to_device) CopyToDevice(item, inputs[i]);
    return !step_.stopped();
  }
  NodeWait& wait = it.waits[detail.wait];
  if (std::exchange(wait.copied, false)) return true;
  for (const uint32_t i : detail.inputs_to_device) CopyToDevice(item, inputs[i]);
  threads_.AddActive();
  it.Hold(1, step_.shared());
  wait.since_ns.store(0, std::memory_order_relaxed);
  wait.in_flight.store(true, std::memory_order_relaxed);
  // One more than the number of copies, so that the count cannot reach zero before all copies have
  // started.
  wait.copies_left.store(static_cast<uint32_t>(detail.inputs_to_host.size()) + 1,
                         std::memory_order_relaxed);
  for (const uint32_t i : detail.inputs_to_host) CopyToHost(wait, inputs[i]);
  CopyEnded(wait, OkStatus());
  return false;
}

void WaitingNodes::CopyToDevice(const Executable::Item& item, Tensor& input) {
  if (!input.valid()) return;  // the input is dead
  Tensor copy;
  threads_.AddActive();
  step_.device().CopyFromHost(input, &copy, Done([this, &item](const Status& status) {
                                if (!status.ok()) step_.Fail(*item.node, status);
                                threads_.Leave();
                              }));
  input = std::move(copy);
}

void WaitingNodes::CopyToHost(NodeWait& wait, Tensor& input) {
  const auto ended = [this, &wait](const Status& status) { CopyEnded(wait, status); };
  if (!input.valid()) return ended(OkStatus());  // the input is dead
  Tensor copy;
  step_.device().CopyToHost(input, &copy, Done(ended));
  input = std::move(copy);
}

void WaitingNodes::CopyEnded(NodeWait& wait, const Status& status) {
  if (!status.ok()) step_.Fail(*wait.item->node, status);
  if (wait.copies_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  wait.in_flight.store(false, std::memory_order_relaxed);
  if (!step_.stopped()) RunAgain(wait);
  threads_.Leave();
}

// Offers the node again, with all inputs in the right memory.
void WaitingNodes::RunAgain(NodeWait& wait) {
  wait.copied = true;
  Iteration& it = *wait.iteration;
  const uint32_t node = it.IndexOf(*wait.item);
  if (ReadyQueues* const here = threads_.ReadyHere(); here != nullptr) {
    propagation_.Push(it, node, *here);
    return loops_.Release(it, *here);
  }
  const ReadyNode ready{&it, node};  // takes over the hold of the wait
  threads_.Share({&ready, 1});
}

}  // namespace penstock

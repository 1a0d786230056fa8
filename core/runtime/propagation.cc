// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/propagation.h"

namespace penstock {

void Propagation::Pass(const Executable::Item& item, Tensor* outputs, bool dead, Iteration& to,
                       ReadyQueues& ready) const {
  PassInline<false>(item, outputs, dead, to, ready);
}

// Takes the first live value that arrives and drops the others. `value` is null or invalid if dead.
void Propagation::ArriveAtMerge(Iteration& it, const Executable::Edge& edge, Tensor* value,
                                ReadyQueues& ready) const {
  if (value == nullptr || !value->valid()) return CountDownMerge(it, edge.dst, 1, ready);
  std::atomic<uint32_t>& pending = it.pending[edge.dst];
  const uint32_t before = pending.fetch_or(Executable::kClaimed, std::memory_order_relaxed);
  if ((before & Executable::kClaimed) != 0) return;
  Fill(&it.inputs[edge.slot], edge.last ? std::move(*value) : Tensor(*value));
  CountDownMerge(it, edge.dst, 0u - Executable::kAlive, ready);
}

void Propagation::CountDownMerge(Iteration& it, uint32_t node, uint32_t change,
                                 ReadyQueues& ready) const {
  const uint32_t before = it.pending[node].fetch_sub(change, std::memory_order_acq_rel);
  const uint32_t after = before - change;
  if (Executable::MergeReady(before) || !Executable::MergeReady(after)) return;
  Push(it, node | ((after & Executable::kAlive) == 0 ? kDead : 0), ready);
}

void Propagation::Push(Iteration& it, uint32_t node, ReadyQueues& ready) const {
  if (it.ready_ns != nullptr) it.ready_ns[node & Executable::kCount] = step_.NowNanos();
  if (&it == ready.here) return ready.Add(node);
  it.Hold(1, step_.shared());
  ready.other_iterations.push_back({&it, node});
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Propagation: passes a node's outputs on to its consumers and counts down their pending counts.
// Consumers with count zero go to the ready queues. Private to this folder.
//
// Threads: any number of threads of the step may use it at once, each with queues of its own. Takes
// no lock, and allocates only if a queue grows. Owns nothing. The code is in a header so that the
// compiler inlines it, because function calls are a large share of the cost of a cheap node.
#pragma once

#include <utility>

#include "core/runtime/node_values.h"
#include "core/runtime/runner.h"
#include "core/runtime/running_step.h"

namespace penstock {

class Propagation {
 public:
  Propagation(const Executable& executable, const RunningStep& step)
      : edges_(executable.edges()), controls_(executable.controls()), step_(step) {}

  // Passes `outputs` on to the consumers in `to`, and leaves them empty. If `dead`, the outputs
  // have no value, and `outputs` may be null. REQUIRES, if kPlain: `to` is the iteration in which
  // the thread works, every output has a value, no consumer is a Merge, and ready times are not
  // recorded.
  template <bool kPlain>
  void PassInline(const Executable::Item& item, Tensor* outputs, bool dead, Iteration& to,
                  ReadyQueues& ready) const;
  // Does the same as PassInline<false>, but is not inlined, for callers to which the cost of a call
  // does not matter.
  void Pass(const Executable::Item& item, Tensor* outputs, bool dead, Iteration& to,
            ReadyQueues& ready) const;

  // Adds the ready node `node` of `it` to the queue of `ready` for the iteration `it`. `node` has
  // the form of ReadyNode::node.
  void Push(Iteration& it, uint32_t node, ReadyQueues& ready) const;

 private:
  static constexpr uint32_t kDead = Executable::kDead;

  template <bool kPlain>
  void Arrive(Iteration& it, uint32_t node, bool dead, bool shared, ReadyQueues& ready) const;
  void ArriveAtMerge(Iteration& it, const Executable::Edge& edge, Tensor* value,
                     ReadyQueues& ready) const;
  void CountDownMerge(Iteration& it, uint32_t node, uint32_t change, ReadyQueues& ready) const;

  const Executable::Edge* const edges_;
  const uint32_t* const controls_;
  const RunningStep& step_;
};

template <bool kPlain>
[[gnu::always_inline]] inline void Propagation::Arrive(Iteration& it, uint32_t node, bool dead,
                                                       bool shared, ReadyQueues& ready) const {
  std::atomic<uint32_t>& pending = it.pending[node];
  uint32_t left;
  if (shared) {
    if (!kPlain && dead) pending.fetch_or(kDead, std::memory_order_relaxed);
    left = pending.fetch_sub(1, std::memory_order_acq_rel) - 1;
  } else {
    left = pending.load(std::memory_order_relaxed) - 1;
    if (!kPlain && dead) left |= kDead;
    pending.store(left, std::memory_order_relaxed);
  }
  if ((left & Executable::kCount) != 0) return;
  if (kPlain) {
    const bool expensive = (left & Executable::kExpensive) != 0;
    (expensive ? ready.expensive : ready.cheap).push_back(node | (left & kDead));
  } else {
    Push(it, node | (left & ~Executable::kCount), ready);
  }
}

template <bool kPlain>
[[gnu::always_inline]] inline void Propagation::PassInline(const Executable::Item& item,
                                                           Tensor* outputs, bool dead,
                                                           Iteration& to,
                                                           ReadyQueues& ready) const {
  // Read once: the code below neither starts nor offers a node, so the step's state cannot change.
  const bool shared = step_.shared();
  const Executable::Edge* edge = edges_ + item.first_edge;
  for (const auto* const end = edge + item.num_edges; edge != end; ++edge) {
    Tensor* const output = !kPlain && dead ? nullptr : &outputs[edge->output];
    if (!kPlain && edge->merges) {
      ArriveAtMerge(to, *edge, output, ready);
      continue;
    }
    if (!kPlain && (output == nullptr || !output->valid())) {
      Arrive<kPlain>(to, edge->dst, true, shared, ready);
      continue;
    }
    Tensor* const slot = &to.inputs[edge->slot];
    if (edge->last) {
      Fill(slot, std::move(*output));
    } else {
      Fill(slot, *output);
    }
    Arrive<kPlain>(to, edge->dst, false, shared, ready);
  }
  if (kPlain ? item.drops_output : !dead && item.may_drop()) {
    EmptyAll(outputs, item.num_outputs);
  }
  const uint32_t* control = controls_ + item.first_control;
  for (const auto* const end = control + item.num_controls; control != end; ++control) {
    if (!kPlain && (to.items[*control].special & Executable::kMerges) != 0) {
      CountDownMerge(to, *control, Executable::kControl, ready);
    } else {
      Arrive<kPlain>(to, *control, dead, shared, ready);
    }
  }
}

}  // namespace penstock

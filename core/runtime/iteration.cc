// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/iteration.h"

#include <algorithm>

namespace penstock {

Iteration::Iteration(const Executable& whole, const Executable::Loop& of)
    : executable(whole),
      loop(&of),
      items(whole.items() + of.first_item),
      inputs(std::make_unique<Tensor[]>(of.num_slots)),
      pending(std::make_unique<std::atomic<uint32_t>[]>(of.num_items)),
      waits(std::make_unique<NodeWait[]>(of.waits.size())),
      children(of.num_children) {
  for (size_t i = 0; i < of.waits.size(); ++i) {
    NodeWait& wait = waits[i];
    wait.iteration = this;
    wait.item = &items[of.waits[i]];
    wait.outputs = std::make_unique<Tensor[]>(wait.item->num_outputs);
  }
}

void Iteration::ResetCounts(bool first) {
  executable.ReadPending(*loop, pending.get());
  if (first) return;
  for (const auto& [node, count] : loop->later_pending) {
    pending[node].store(count, std::memory_order_relaxed);
  }
}

void Iteration::Clear() {
  for (uint32_t i = 0; i < loop->num_slots; ++i) inputs[i] = Tensor();
  for (size_t i = 0; i < loop->waits.size(); ++i) waits[i].copied = false;
  std::fill(children.begin(), children.end(), nullptr);
  ready_ns = nullptr;
}

}  // namespace penstock

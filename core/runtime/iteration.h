// SPDX-License-Identifier: Apache-2.0
//
// Iteration: one pass over the nodes of a loop, or over the nodes outside of loops. It stores the
// nodes' input values and pending counts. Private to this folder.
//
// Ownership: StepLoops owns all iterations of a step and reuses them.
// Threads: only the producing node's thread may access a slot until it has counted down the pending
// count of the consumer; after that only the consumer's thread. Counts and holds are atomic; while
// only one thread works in the step, it changes them by plain loads and stores.
// Invariants: an iteration of a loop lives until nothing has a hold (a reference count) on it. Each
// of the following has a hold: each thread that works in the iteration; each of its nodes that
// waits, is offered, or is in the queue of a thread that works in another iteration; each loop
// begun inside the iteration; the iteration before it; and, in the first iteration, the Enters that
// have not run yet. Other nodes need no hold, so a node in a loop costs no more than a node outside
// of loops. The iteration outside of loops has no holds: it lives as long as the step.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/op/kernel.h"
#include "core/runtime/executable.h"

namespace penstock {

struct Frame;  // core/runtime/loop_pool.h
struct Iteration;

// The state of a node that waits until its kernel calls its Done, or until its inputs are copied.
struct NodeWait {
  Iteration* iteration = nullptr;
  const Executable::Item* item = nullptr;
  std::optional<KernelContext> context;
  std::unique_ptr<Tensor[]> outputs;
  int64_t start_ns = 0;              // 0 unless the step is observed
  std::atomic<int64_t> since_ns{0};  // when the kernel began; 0: the node waits for copies
  bool copied = false;               // set when the inputs have been copied to the kernel's memory
  std::atomic<uint32_t> copies_left{0};
  std::atomic<bool> in_flight{false};
};

struct Iteration {
  // `loop` is a loop of `executable`, which must outlive this object.
  Iteration(const Executable& executable, const Executable::Loop& loop);
  Iteration(const Iteration&) = delete;
  Iteration& operator=(const Iteration&) = delete;

  // Sets every count to its initial value: that of a loop's first iteration if `first`, else that
  // of a later one.
  void ResetCounts(bool first);
  // Drops the values that a failed step left behind.
  void Clear();

  // Adds `count` holds. `shared` must be true if other threads may call Hold or DropHold at the
  // same time.
  void Hold(int count, bool shared) {
    if (frame == nullptr) return;
    if (shared) {
      holds.fetch_add(count, std::memory_order_relaxed);
    } else {
      holds.store(holds.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    }
  }
  // Drops one hold. Returns whether it was the last one; the caller must then end the iteration.
  [[nodiscard]] bool DropHold(bool shared) {
    if (frame == nullptr) return false;
    if (shared) return holds.fetch_sub(1, std::memory_order_acq_rel) == 1;
    const int left = holds.load(std::memory_order_relaxed) - 1;
    holds.store(left, std::memory_order_relaxed);
    return left == 0;
  }

  uint32_t IndexOf(const Executable::Item& item) const {
    return static_cast<uint32_t>(&item - items);
  }

  const Executable& executable;
  const Executable::Loop* const loop;
  const Executable::Item* const items;               // the loop's items
  std::unique_ptr<Tensor[]> inputs;                  // by slot; empty until the value arrives
  std::unique_ptr<std::atomic<uint32_t>[]> pending;  // by node, as in Executable
  std::unique_ptr<NodeWait[]> waits;                 // by Detail::wait
  std::unique_ptr<int64_t[]> ready_ns;               // by node; null unless the step is traced
  std::vector<Frame*> children;                      // loops begun inside, by Loop::child
  Frame* frame = nullptr;                            // null outside of loops
  uint64_t frame_id = 0;                             // 0 outside of loops
  uint64_t number = 0;
  Iteration* next = nullptr;  // the next iteration, if it has begun
  std::atomic<int> holds{0};
};

}  // namespace penstock

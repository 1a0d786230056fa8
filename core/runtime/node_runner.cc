// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/node_runner.h"

#include <utility>

#include "core/base/guarded.h"
#include "core/base/thread_pool.h"
#include "core/runtime/allocation_record.h"
#include "core/runtime/flow_nodes.h"
#include "core/runtime/node_stats.h"
#include "core/runtime/node_values.h"
#include "core/runtime/variable_inputs.h"
#include "core/tensor/memory_account.h"

namespace penstock {
namespace {

// A runner compares the clock with the deadline and with the end of its slice once per kClockPeriod
// cheap nodes, before each expensive node, and after a node that took longer than kLongNanos.
constexpr int kClockPeriod = 256;
constexpr int64_t kLongNanos = 50'000;
// How long a step keeps a thread of the scheduler. A hand-over costs some microseconds. A client's
// call waits in the scheduler's queue several times, each time behind all running steps. With this
// value, a call is answered within 100 ms while eight steps run on two threads.
constexpr int64_t kSliceNanos = 2'000'000;

}  // namespace

void NodeRunner::InitRunner(Runner* runner) {
  runner->ready.here = &loops_.root();
  runner->outputs = std::make_unique<Tensor[]>(executable_.outputs_max());
  runner->params = step_.KernelParams();
}

void NodeRunner::CheckDeadline() {
  if (!step_.DeadlinePassed()) return;
  step_.Stop(DeadlineExceeded("step ", step_.step_id(), " did not end before its deadline",
                              loops_.DescribeWaits(), loops_.DescribeFrames()));
}

bool NodeRunner::RunNodes(Runner& runner) {
  RunningStep& step = step_;
  const WatchedLoops watched(&step);
  const ChargedAccount charged(step.memory());
  ReadyQueues& ready = runner.ready;
  runner.slice_end_ns = 0;
  for (;;) {
    if ((ready.cheap.empty() || !ready.expensive.empty()) && !Refill(runner)) return true;
    if (--runner.nodes_to_clock < 0 && !CheckClock(runner)) return false;
    const uint32_t node = ready.cheap.back();
    ready.cheap.pop_back();
    if (step.cancelled() && MayDropReadyNodes(runner)) [[unlikely]] {
      step.DropNodes();
      ready.Drop();
      continue;
    }
    Process(runner, node);
  }
}

// Fails the step if its deadline has passed. Returns false if the runner's slice has ended.
bool NodeRunner::CheckClock(Runner& runner) {
  runner.nodes_to_clock = kClockPeriod;
  if (!runner.yields && !step_.has_deadline()) return true;
  const int64_t now_ns = step_.NowNanos();
  if (step_.has_deadline() && now_ns >= step_.deadline_ns()) CheckDeadline();
  if (!runner.yields) return true;
  if (runner.slice_end_ns == 0) runner.slice_end_ns = now_ns + kSliceNanos;
  return now_ns < runner.slice_end_ns;
}

// After a commit, nodes outside of loops still run. Loop nodes may be dropped, because their number
// is unbounded.
bool NodeRunner::MayDropReadyNodes(const Runner& runner) const {
  return !step_.committed() || runner.ready.here->frame != nullptr;
}

// Offers the expensive nodes that this thread can spare, and puts the next node to run at the end
// of `cheap`. Returns false if there is none.
bool NodeRunner::Refill(Runner& runner) {
  auto& [here, cheap, expensive, other_iterations] = runner.ready;
  for (;;) {
    if (!expensive.empty() && expensive.size() + cheap.size() + other_iterations.size() > 1) {
      threads_.Offer(runner.ready);
    }
    if (!cheap.empty()) return true;
    if (!expensive.empty()) {
      runner.nodes_to_clock = 0;
      cheap.push_back(expensive.back());
      expensive.pop_back();
      return true;
    }
    if (here->frame != nullptr || !other_iterations.empty()) {
      SwitchIteration(runner);
    } else {
      runner.nodes_to_clock = 0;
      if (!threads_.TakeOffered(runner)) return false;
    }
  }
}

// Drops the runner's hold on its iteration, which may end the iteration. Continues with the
// iteration of the last node in `other_iterations`, or with the nodes outside of loops.
void NodeRunner::SwitchIteration(Runner& runner) {
  ReadyQueues& ready = runner.ready;
  Iteration& left = *std::exchange(ready.here, nullptr);
  loops_.Release(left, ready);
  if (ready.other_iterations.empty()) return runner.WorkIn(loops_.root());
  Iteration& here = *ready.other_iterations.back().iteration;
  runner.WorkIn(here);
  // Each of these nodes has a hold on `here`; the thread keeps one of the holds.
  for (bool held = false;
       !ready.other_iterations.empty() && ready.other_iterations.back().iteration == &here;
       held = true) {
    ready.Add(ready.other_iterations.back().node);
    ready.other_iterations.pop_back();
    if (held) (void)here.DropHold(step_.shared());
  }
}

// Inlined into RunNodes, because for a cheap node the work around the kernel takes most of the
// time.
[[gnu::always_inline]] inline void NodeRunner::Process(Runner& runner, uint32_t node) {
  if ((node & kDead) != 0) return ProcessSpecial(runner, node);
  Iteration& it = *runner.ready.here;
  const Item& item = it.items[node];
  Tensor* const outputs = runner.outputs.get();
  if (item.special != Executable::kNoOp || it.ready_ns != nullptr) {
    if (item.special != 0 || step_.observed()) return ProcessSpecial(runner, node);
    const Status status = Compute(item, runner, outputs);
    if (!status.ok()) [[unlikely]]
      return Fail(item, status, outputs);
    ReleaseInputs(it, item);
  }
  propagation_.PassInline<true>(item, outputs, false, it, runner.ready);
}

void NodeRunner::ProcessSpecial(Runner& runner, uint32_t node) {
  Iteration& it = *runner.ready.here;
  const Item& item = it.items[node & ~kDead];
  const uint32_t special = item.special;
  const bool dead = (node & kDead) != 0 && (special & Executable::kRunsDead) == 0;
  const int64_t start_ns = step_.observed() ? step_.NowNanos() : 0;
  Tensor* const outputs = runner.outputs.get();
  Status status;
  if (dead) {
    if ((special & Executable::kFetch) != 0) status = DeadFetchError(*item.node);
  } else if ((special & Executable::kCommits) != 0) {
    step_.Commit();
  } else if ((special & Executable::kNoOp) == 0) {
    if ((special & Executable::kReadsVariables) != 0) status = ReadVariables(it, item);
    if (status.ok() && (special & Executable::kCopiesInputs) != 0 &&
        !waiting_.CopyInputs(it, item)) {
      return;
    }
    if (status.ok() && (special & Executable::kAsync) != 0) {
      return waiting_.StartAsync(it, item, start_ns);
    }
    if (status.ok()) status = ComputeSpecial(item, runner, outputs);
  }
  if (!status.ok()) return Fail(item, status, outputs);
  if (step_.observed() && !dead) {
    const int64_t took_ns =
        RecordNode(step_, it, item, start_ns, outputs, std::exchange(runner.memory, {}));
    if (took_ns > kLongNanos) runner.nodes_to_clock = 0;
  }
  ReleaseInputs(it, item);
  Route(it, item, outputs, dead, runner.ready);
}

Status NodeRunner::ComputeSpecial(const Item& item, Runner& runner, Tensor* outputs) {
  if ((item.special & Executable::kFlow) != 0) {
    return ComputeFlow(*runner.ready.here, item, outputs);
  }
  if (!step_.traced()) return Compute(item, runner, outputs);
  const AllocationRecord record(&runner.params);
  Status status = Compute(item, runner, outputs);
  if (status.ok()) runner.memory = record.memory();
  return status;
}

Status NodeRunner::Compute(const Item& item, Runner& runner, Tensor* outputs) {
  KernelContext::Params& params = runner.params;
  params.node_name = &item.node->name();
  params.inputs = &runner.ready.here->inputs[item.first_input];
  params.outputs = outputs;
  params.output_types = item.node->output_types().data();
  params.num_inputs = static_cast<int>(item.num_inputs);
  params.num_outputs = static_cast<int>(item.num_outputs);
  params.output_on_host = (item.special & Executable::kHostOutputs) != 0
                              ? executable_.detail(item).output_on_host.get()
                              : nullptr;
  KernelContext context(params);
  Status status = Guarded([&] { return item.kernel->Compute(context); });
  if (!status.ok()) return status;
  return CheckOutputs(item, outputs);
}

// Passes the outputs on to the iteration in which the node's consumers run.
inline void NodeRunner::Route(Iteration& it, const Item& item, Tensor* outputs, bool dead,
                              ReadyQueues& ready) {
  switch (item.flow) {
    case FlowOp::kEnter:
      return loops_.Enter(it, item, outputs, dead, ready);
    case FlowOp::kNextIteration:
      // A dead value begins no iteration.
      return dead ? void() : loops_.NextIteration(it, item, outputs, ready);
    case FlowOp::kExit: {
      // When the loop ends, it sends a dead value if no value has left.
      if (dead) return;
      const Status status = loops_.Exit(it, item, outputs, ready);
      if (!status.ok()) step_.Fail(*item.node, status);
      return;
    }
    default:
      return propagation_.PassInline<false>(item, outputs, dead, it, ready);
  }
}

void NodeRunner::Fail(const Item& item, const Status& status, Tensor* outputs) {
  EmptyAll(outputs, item.num_outputs);
  step_.Fail(*item.node, status);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "client/queue_runner.h"

#include <atomic>
#include <memory>
#include <set>

#include "client/ops/line_scope.h"
#include "core/graph/graph.h"
#include "core/op/private_attrs.h"

namespace penstock::client {
namespace {

// The timeout for closing a queue after a stop: the queue's task may be lost.
constexpr int64_t kCancelMillis = 5000;
// The timeout of enqueue ops: so long that it never expires, because waiting at a full queue is not
// an error. The session's timeout would expire. A stop cancels the ops.
constexpr int64_t kUntilStopMillis = int64_t{100} * 24 * 60 * 60 * 1000;

Status RunUntilItFails(Session& session, const TensorRef& op, const RunOptions& options) {
  ASSIGN_OR_RETURN(const Callable run, session.MakeCallable({}, {}, {op}));
  for (;;) RETURN_IF_ERROR(run({}, options).status());
}

// Returns an error if the node is a shuffle whose order may differ between sessions.
Status CheckShuffles(const Node& node) {
  if (!node.op().shuffles) return OkStatus();
  if (*node.attr<int64_t>("seed") == 0 && *node.attr<int64_t>("seed2") == 0) {
    return InvalidArgument("'", node.name(), "' (", node.op_name(), ") has no seed");
  }
  const EdgeType made = node.output_type(0);
  const bool queue = made.refers_to_state();
  if (!queue || node.attr<bool>(kRepeatableAttr) != nullptr) return OkStatus();
  return InvalidArgument("'", node.name(), "' (", node.op_name(), ") is not repeatable");
}

}  // namespace

Status QueueRunners::CheckRepeatable(const Output& taken) const {
  std::vector<const Node*> nodes = {program_.NodeOf(taken)};
  for (const Runner& runner : runners_) {
    ASSIGN_OR_RETURN(const TensorName name, TensorName::Parse(runner.enqueues[0].name));
    if (runner.threads > 1 || runner.enqueues.size() > 1) {
      return InvalidArgument("the queue runner of '", name.node, "' has ", runner.threads,
                             " threads for each of ", runner.enqueues.size(), " enqueue ops");
    }
    nodes.push_back(program_.graph().FindNode(name.node));
  }
  std::set<const Node*> seen;
  while (!nodes.empty()) {
    const Node* const node = nodes.back();
    nodes.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    RETURN_IF_ERROR(CheckShuffles(*node));
    for (const Endpoint& input : node->inputs()) nodes.push_back(input.node);
    for (const Node* before : node->control_inputs()) nodes.push_back(before);
  }
  return OkStatus();
}

void QueueRunners::Add(const Outputs& enqueues, const Outputs& queues, int threads,
                       SourceLine line) {
  const CallerLine source(program_, line);
  if (threads < 1) {
    return program_.Fail(InvalidArgument("a queue runner with ", threads, " threads"));
  }
  Runner runner{.enqueues = {enqueues.begin(), enqueues.end()}, .threads = threads};
  for (const Output queue : queues) {
    const auto cleared = program_.ClearControlDependencies();
    runner.close.push_back(Call("QueueCloseV2", {queue}));
    runner.cancel.push_back(Call("QueueCloseV2", {queue}, {{"cancel_pending_enqueues", true}}));
  }
  runners_.push_back(std::move(runner));
}

void QueueRunners::Start(Session& session, Coordinator& coordinator) const {
  for (const Runner& runner : runners_) {
    const int threads = static_cast<int>(runner.enqueues.size()) * runner.threads;
    const auto left = std::make_shared<std::atomic<int>>(threads);
    for (int i = 0; i < threads; ++i) {
      const TensorRef& enqueue = runner.enqueues[i / runner.threads];
      coordinator.Start([&session, &coordinator, &runner, &enqueue, left] {
        const RunOptions until_stop{.timeout_ms = kUntilStopMillis,
                                    .cancellation = &coordinator.cancellation()};
        const Status end = RunUntilItFails(session, enqueue, until_stop);
        // Requests the stop first, because the calls below may take time.
        if (!absl::IsOutOfRange(end)) coordinator.RequestStop(end);
        if (left->fetch_sub(1) > 1) return OkStatus();
        // Closing waits for pending enqueues of other runners. Ignores errors, because the queue
        // may be closed already.
        if (!coordinator.should_stop()) (void)session.Run({}, {}, runner.close, until_stop);
        if (coordinator.should_stop()) {
          (void)session.Run({}, {}, runner.cancel, {.timeout_ms = kCancelMillis});
        }
        return OkStatus();
      });
    }
  }
}

}  // namespace penstock::client

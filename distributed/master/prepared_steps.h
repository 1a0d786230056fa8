// SPDX-License-Identifier: Apache-2.0
//
// PreparedSteps: the prepared steps of one session, by their names (StepCache) and by the handles
// of callables. To prepare a step, it compiles the step and registers each part with its task. If
// feeds of other sizes, or newly measured costs, call for another placement, it prepares the step
// once more; the old prepared step is used until the new one is ready.
//
// Thread-safe; it has no lock of its own. Held by shared pointers: steps that are being prepared
// keep it alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/done.h"
#include "core/base/scheduler.h"
#include "distributed/master/callables.h"
#include "distributed/master/prepared_step.h"
#include "distributed/master/session_graph.h"
#include "distributed/master/session_steps.h"

namespace penstock {

class PreparedSteps : public std::enable_shared_from_this<PreparedSteps> {
 public:
  using Prepared = std::shared_ptr<PreparedStep>;
  struct Options {
    std::string session;  // its handle
    std::shared_ptr<const SessionTasks> tasks;
    std::shared_ptr<SessionGraph> graph;
    std::shared_ptr<const SessionSteps> steps;  // says whether the session is open
    Scheduler* threads = nullptr;
    // The limit for registering a step's graphs. 0: a minute, and another one for each GiB of the
    // graphs' tensors.
    int64_t register_timeout_ms = 0;
    int64_t memory_limit = 0;  // SessionOptions::memory_limit
  };
  explicit PreparedSteps(Options options) : options_(std::move(options)) {}

  StepCache& cache() { return cache_; }
  Callables& callables() { return callables_; }
  // Returns the steps of the cache, except partial runs, and those of the callables.
  std::vector<Prepared> List() const;

  // Calls `done` when the step is ready or could not be prepared. If no other caller prepares it,
  // prepares it on this thread, for feeds of these sizes; if `feeds` is empty, for unknown sizes.
  void Await(const Prepared& step, absl::Span<const Tensor> feeds, Done done);
  // Does the same as Await, but prepares the step on the pool. `fed_shapes`: the shapes of the
  // feeds; empty if they are not known.
  void AwaitOnPool(const Prepared& step, std::vector<PartialShape> fed_shapes, Done done);

  // Returns true if the step may exceed the memory limit with these feeds: it was compiled for
  // smaller feeds, or without regard to the limit.
  bool Outgrows(const PreparedStep& step, absl::Span<const Tensor> feeds) const {
    return options_.memory_limit > 0 && step.AnyFeedLarger(feeds);
  }
  using UseLarger = absl::AnyInvocable<void(StatusOr<Prepared>) &&>;
  // Prepares the step for feeds of these sizes, replaces the old prepared step by the new one, and
  // calls `use` with the new one, or with an error.
  void PrepareLarger(const Prepared& step, absl::Span<const Tensor> feeds, UseLarger use);
  // Places the step again, on the pool, if the feeds are more than twice, or less than half, as
  // large as those that it was compiled for. Does so at most once for each step.
  void AdaptToFeeds(const Prepared& step, absl::Span<const Tensor> feeds);
  // Places the step again, on the pool, for feeds of these shapes. Replaces the step only if a node
  // has moved.
  void PlaceAgain(const Prepared& step, std::vector<PartialShape> fed_shapes);

 private:
  void Prepare(const Prepared& step, std::vector<PartialShape> fed_shapes);
  StatusOr<SessionGraph::Compiled> Compile(PreparedStep* step);
  void Register(const Prepared& step, SessionGraph::Compiled compiled);
  void EndPreparing(const Prepared& step, Status status);
  void Replace(const PreparedStep& step, const Prepared& other);

  const Options options_;
  std::atomic<uint64_t> next_graph_{1};
  StepCache cache_;
  Callables callables_;
};

}  // namespace penstock

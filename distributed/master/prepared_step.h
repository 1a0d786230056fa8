// SPDX-License-Identifier: Apache-2.0
//
// PreparedStep: one combination of feeds, fetches and targets, compiled and registered with the
// tasks that take part in it. StepCache: the prepared steps of one session, by the names of their
// feeds, fetches and targets.
//
// The first caller that asks for a step prepares it; other callers wait. Thread-safe. Held by
// shared pointers: a running step holds its prepared step, so that the cache may drop it at any
// time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/done.h"
#include "core/base/mutex.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"
#include "distributed/master/auto_placement.h"
#include "distributed/master/step_times.h"
#include "distributed/session/session.h"
#include "distributed/worker/worker_client.h"
#include "distributed/worker/worker_graph.h"

namespace penstock {

class CostTable;
class TaskHealth;

// A task that a session of a master uses.
struct SessionTask {
  TaskId id;
  std::shared_ptr<WorkerClient> client;
  std::vector<DeviceInfo> devices;
  std::shared_ptr<const TaskHealth> health;  // null: not watched (this process)
};

struct SessionTasks {
  std::vector<SessionTask> list;  // the master's own first
  // True once the tasks have been told to delete the session, with all its graphs.
  std::atomic<bool> session_deleted{false};
};

// Returns the error of a fetch whose branch was not taken.
Status DeadFetchError(string_view fetch);

class PreparedStep {
 public:
  // The part of the step that one task runs.
  struct Part {
    const SessionTask* task = nullptr;
    uint64_t graph = 0;  // its handle there
  };
  struct Feed {
    std::string name;
    DType dtype = DType::kInvalid;
    PartialShape shape;
  };

  explicit PreparedStep(CallableSpec names, bool partial = false)
      : names_(std::move(names)), partial_(partial) {}
  // Tells the tasks to drop their parts.
  ~PreparedStep();

  const CallableSpec& names() const { return names_; }
  // Returns whether this is a partial run, which is fed and fetched while it runs.
  bool partial() const { return partial_; }
  bool ready() const { return ready_.load(std::memory_order_acquire); }

  // Calls `done` when the step is ready or could not be prepared. Returns true if the caller is the
  // first: then it has to prepare the step, and end with Finish.
  [[nodiscard]] bool AwaitReady(Done done);
  // Makes the step ready, or failed if `status` is an error, and calls each waiting `done` with it.
  void Finish(const Status& status);

  // The following are written by the caller that prepares the step, before Finish; they are
  // constant afterwards.
  std::vector<Feed> feeds;
  // The shapes of the feeds on which the compiler's estimates are based: the shapes of fed values,
  // or the shapes that the graph promises if the step was compiled before any value was fed (as
  // callables and partial runs are).
  std::vector<PartialShape> expected_shapes;
  std::shared_ptr<const CostTable> costs;  // used by the compiler; null: estimates only
  // The devices of the step's nodes, for CompileOptions::placed_before. Null unless the session
  // places automatically and some node of the step can run on several devices.
  std::shared_ptr<const DeviceByNode> placed;
  std::string session;
  std::shared_ptr<const SessionTasks> tasks;  // the parts have pointers into it
  std::vector<Part> parts;                    // the part of the master's own task comes last
  // The whole step, if it consists of one part and its task is in this process; else null.
  std::shared_ptr<WorkerGraph> local;
  // For a partial run: the indices of the feeds that each fetch needs, by fetch.
  std::vector<std::vector<int>> feeds_of_fetches;
  // How long successful executions took. If `local`, an execution is timed only if it is measured
  // (traced, sampled, or for a cost graph), or if `placed`.
  mutable StepTimes times;
  StepSampling sampling;               // the sampling of executions; used only if `placed`
  std::atomic<int64_t> executions{0};  // number of executions begun; not counted for a partial run
  // Whether to place the step again when the client feeds values of sizes that it was not compiled
  // for. Set if costs have decided where a node runs; cleared once the step has been placed again.
  std::atomic<bool> may_adapt_to_feeds{false};
  // Returns whether `tensors` have more than twice, or less than half, the expected number of
  // bytes.
  bool FeedsDiffer(absl::Span<const Tensor> tensors) const;
  // Returns whether the sizes of all feeds were known when the step was compiled.
  bool KnowsFeedSizes() const;
  // Returns whether one of `tensors` is larger than expected, or its size was unknown.
  bool AnyFeedLarger(absl::Span<const Tensor> tensors) const;

  // If the step was compiled before any value was fed, notes the shapes of the first feeds.
  // Predictions of the step's costs are based on them. REQUIRES: the tensors fit the feeds.
  void NoteFeeds(absl::Span<const Tensor> tensors) {
    if (!feeds_noted_.load(std::memory_order_relaxed)) [[unlikely]]
      NoteFirstFeeds(tensors);
  }
  // Returns the shapes that were noted; if there are none, the expected shapes.
  std::vector<PartialShape> LikelyShapes() const;

  // The graphs of the step's partitions, by device, for RunMetadata::cost_graph; null until
  // KeepGraphs is called.
  using Graphs = std::vector<std::pair<std::string, Graph>>;
  std::shared_ptr<const Graphs> graphs() const;
  void KeepGraphs(std::shared_ptr<const Graphs> graphs);

  // InvalidArgument names the first feed that its tensor does not fit.
  Status CheckFeeds(absl::Span<const Tensor> tensors) const;
  Status CheckFeed(size_t index, const Tensor& tensor) const;
  // InvalidArgument if a fetch has no value, because its branch was not taken.
  Status CheckFetches(absl::Span<const Tensor> tensors) const;

 private:
  enum class State { kNew, kPreparing, kReady, kFailed };

  void NoteFirstFeeds(absl::Span<const Tensor> tensors);

  const CallableSpec names_;
  const bool partial_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> feeds_noted_{false};
  mutable Mutex mu_;
  std::shared_ptr<const Graphs> graphs_ ABSL_GUARDED_BY(mu_);
  std::vector<PartialShape> fed_shapes_ ABSL_GUARDED_BY(mu_);
  State state_ ABSL_GUARDED_BY(mu_) = State::kNew;
  Status status_ ABSL_GUARDED_BY(mu_);
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mu_);
};

class StepCache {
 public:
  // If a session has more prepared steps than this, the cache drops all of them, and the session
  // prepares each one again when a client runs it. This limits the memory that a client can use by
  // asking for new combinations of feeds and fetches again and again.
  static constexpr size_t kStepsMax = 4096;

  // Returns the step with these names; makes an unprepared one if there is none.
  std::shared_ptr<PreparedStep> Get(const Feeds& feeds, const std::vector<std::string>& fetches,
                                    const std::vector<std::string>& targets);
  // Returns the step for partial runs with these names; makes an unprepared one if there is none.
  std::shared_ptr<PreparedStep> GetPartial(const CallableSpec& names);
  // Returns all steps except partial runs, sorted by their names.
  std::vector<std::shared_ptr<PreparedStep>> List() const;
  // Removes `step`, which could not be prepared.
  void Drop(const PreparedStep& step);
  // Removes all steps.
  void Clear();
  // Replaces `step` by `other`, which has the same names, if `step` is still in the cache.
  void Replace(const PreparedStep& step, const std::shared_ptr<PreparedStep>& other);

 private:
  // The names of a step, as pointers to their owner. The same names in another order are another
  // key.
  struct Names {
    const Feeds* fed = nullptr;                       // the feeds of Get; null in stored keys
    const std::vector<std::string>* feeds = nullptr;  // names of feeds; used if `fed` is null
    const std::vector<std::string>* fetches = nullptr;
    const std::vector<std::string>* targets = nullptr;
    bool partial = false;

    size_t num_feeds() const { return fed != nullptr ? fed->size() : feeds->size(); }
    const std::string& feed(size_t i) const {
      return fed != nullptr ? (*fed)[i].first : (*feeds)[i];
    }
    bool operator==(const Names& other) const;
    template <class H>
    friend H AbslHashValue(H h, const Names& names) {
      h = H::combine(std::move(h), names.num_feeds(), names.partial);
      for (size_t i = 0; i < names.num_feeds(); ++i) h = H::combine(std::move(h), names.feed(i));
      return H::combine(std::move(h), *names.fetches, *names.targets);
    }
  };
  static Names NamesOf(const PreparedStep& step) {
    const CallableSpec& names = step.names();
    return {.feeds = &names.feeds,
            .fetches = &names.fetches,
            .targets = &names.targets,
            .partial = step.partial()};
  }
  std::shared_ptr<PreparedStep> Get(const Names& names);
  std::vector<std::shared_ptr<PreparedStep>> TakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  // The names in a key belong to the entry's value.
  absl::flat_hash_map<Names, std::shared_ptr<PreparedStep>> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// PreparedStep: one combination of feeds, fetches and targets, compiled and registered with the
// tasks that take part in it; StepCache: the prepared steps of one session, by their names.
//
// Prepared once, by the caller that asks first; others wait for it. Thread-safe. Held by shared
// pointers: a running step keeps its own, so that the cache may forget it at any time.
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

// A task, as a session of a master uses it.
struct SessionTask {
  TaskId id;
  std::shared_ptr<WorkerClient> client;
  std::vector<DeviceInfo> devices;
  std::shared_ptr<const TaskHealth> health;  // null: not watched (this process)
};

struct SessionTasks {
  std::vector<SessionTask> list;  // the master's own first
  // The tasks have been told to forget the session, with all its graphs.
  std::atomic<bool> session_deleted{false};
};

// The error of a fetch whose branch was not taken.
Status NoValue(string_view fetch);

class PreparedStep {
 public:
  // The part of one task.
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
  // Has the tasks forget their parts.
  ~PreparedStep();

  const CallableSpec& names() const { return names_; }
  // Feeds come and fetches leave while it runs.
  bool partial() const { return partial_; }
  bool ready() const { return ready_.load(std::memory_order_acquire); }

  // `done` is called when the step is ready or could not be prepared. True: the caller is the first
  // and has to prepare it, ending with Finish.
  [[nodiscard]] bool AwaitReady(Done done);
  void Finish(const Status& status);

  // Written by the caller that prepares it, before Finish; constant once ready.
  std::vector<Feed> feeds;
  // The shapes that the compiler's estimates begin with, by feed: of values that were fed or, if it
  // was compiled before there were any, as callables and partial runs are, those that the graph
  // promises.
  std::vector<PartialShape> expected_shapes;
  std::shared_ptr<const CostTable> costs;  // that it was compiled with; null: estimates only
  // The devices of its nodes, for CompileOptions::placed_before. Null unless the session places
  // automatically and a node of the step has a choice.
  std::shared_ptr<const DeviceByNode> placed;
  std::string session;
  std::shared_ptr<const SessionTasks> tasks;  // what the parts point into
  std::vector<Part> parts;                    // the master's own task's last
  // The whole step, if it is one part of one task that is in this process.
  std::shared_ptr<WorkerGraph> local;
  // For a partial run: the feeds that each fetch needs.
  std::vector<std::vector<int>> feeds_of_fetches;
  // How long executions took that ended well. Those of one part in this process are timed only if
  // they are measured (traced, sampled, or for a cost graph), or if `placed`.
  mutable StepTimes times;
  StepSampling sampling;               // if `placed`
  std::atomic<int64_t> executions{0};  // that have begun, of a step that is no partial run
  // The step is placed anew when values are fed that it was not compiled for. Set if costs decided
  // where a node runs; cleared when that has happened once.
  std::atomic<bool> watches_feeds{false};
  // Whether `tensors` are more than twice, or less than half, the bytes that were expected.
  bool FeedsDiffer(absl::Span<const Tensor> tensors) const;
  // Whether the sizes of all feeds were known when it was compiled.
  bool KnowsFeeds() const;
  // Whether one of `tensors` is larger than was expected, or no size was.
  bool FeedsExceed(absl::Span<const Tensor> tensors) const;

  // Notes the shapes of the first values that are fed to a step that was compiled before there were
  // any; what is predicted of the step begins with them. REQUIRES tensors that fit the feeds.
  void NoteFeeds(absl::Span<const Tensor> tensors) {
    if (!feeds_noted_.load(std::memory_order_relaxed)) [[unlikely]]
      NoteFirstFeeds(tensors);
  }
  // The shapes that were noted; those expected if there are none.
  std::vector<PartialShape> LikelyShapes() const;

  // The graphs of its partitions, by device, for RunMetadata::cost_graph; null until they are kept.
  using Graphs = std::vector<std::pair<std::string, Graph>>;
  std::shared_ptr<const Graphs> graphs() const;
  void KeepGraphs(std::shared_ptr<const Graphs> graphs);

  // InvalidArgument if the tensors do not fit the feeds; names the one.
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
  // When there are more steps than this, all are forgotten and prepared again: a client that asks
  // for ever new combinations is not given ever more memory.
  static constexpr size_t kStepsMax = 4096;

  // The step of these names; made if it is not there.
  std::shared_ptr<PreparedStep> Get(const Feeds& feeds, const std::vector<std::string>& fetches,
                                    const std::vector<std::string>& targets);
  // The partial run of these names.
  std::shared_ptr<PreparedStep> GetPartial(const CallableSpec& names);
  // Returns the steps that are there now, without partial runs, sorted by their names.
  std::vector<std::shared_ptr<PreparedStep>> List() const;
  // Forgets `step`, which could not be prepared.
  void Drop(const PreparedStep& step);
  // Forgets all.
  void Clear();
  // `other`, of the same names, takes the place of `step`, if that is still there.
  void Replace(const PreparedStep& step, const std::shared_ptr<PreparedStep>& other);

 private:
  // The names of a step, wherever they are kept. The order counts.
  struct Names {
    const Feeds* fed = nullptr;                       // either this
    const std::vector<std::string>* feeds = nullptr;  // or this
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
  // Keys point into their values.
  absl::flat_hash_map<Names, std::shared_ptr<PreparedStep>> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// MasterSession: one session on its master, for local and remote clients: its graph, its prepared
// steps, and the steps that run.
//
// A step that has only one part, in this process, runs on the caller's thread with hardly any
// overhead; every other step is a MasterStep. Thread-safe. Held by shared pointers: running steps
// keep the session alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/compiler/pass/compile_report.h"
#include "distributed/master/callables.h"
#include "distributed/master/client_activity.h"
#include "distributed/master/master_step.h"
#include "distributed/master/measured_costs.h"
#include "distributed/master/partial_runs.h"
#include "distributed/master/prepared_step.h"
#include "distributed/master/session_steps.h"
#include "distributed/master/step_counters.h"
#include "distributed/master/step_recorder.h"
#include "distributed/session/session.h"

namespace penstock {

class Wait;  // see core/base/join.h
class HealthMonitor;
struct CompileOptions;

class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  struct Options {
    std::string handle;  // unique in the cluster
    SessionOptions session;
    std::vector<SessionTask> tasks;  // first the master's own task, in this process
    MasterStep::Services services;
    HealthMonitor* health = nullptr;  // null: tasks are not watched
    const Registry* registry = nullptr;
    std::shared_ptr<StepCounters> counters = nullptr;  // null: steps are not counted
    std::shared_ptr<StepRecorder> recorder = nullptr;  // null: steps are not recorded
  };
  // Creates the session in all tasks, and waits until all have answered.
  static StatusOr<std::shared_ptr<MasterSession>> Create(Options options);
  ~MasterSession();

  const std::string& handle() const { return options_.handle; }
  const SessionOptions& options() const { return options_.session; }
  const std::vector<SessionTask>& tasks() const { return tasks_->list; }

  // Changes the graph by `add`, which must leave the graph unchanged if it fails. Returns the new
  // version. Aborted if `expected_version` >= 0 is not the present version.
  StatusOr<int64_t> Extend(int64_t expected_version, absl::FunctionRef<Status(Graph*)> add);

  // Runs a step and blocks until its outputs are there. `outputs` are in the order of `fetches`.
  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata);

  // The arguments of a step that the pool prepares and runs, so that no caller's thread blocks.
  // Borrowed until `done`. A callable uses the options with which it was made, except for
  // `cancellation`.
  struct AsyncRun {
    RunOptions options;
    Feeds feeds;  // if the step is a callable: without names
    std::vector<std::string> fetches;
    std::vector<std::string> targets;
    std::vector<Tensor> outputs;
    RunMetadata metadata;

    // Used by the session only.
    std::vector<Tensor> values;
    StepStatsCollector stats;
  };
  void RunAsync(AsyncRun* run, Done done);

  // Make, run and release callables. They end with the session. RunCallableAsync uses the `options`
  // of MakeCallable.
  StatusOr<int64_t> MakeCallable(const CallableSpec& spec, const RunOptions& options = {});
  Status RunCallable(int64_t callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata);
  void RunCallableAsync(int64_t callable, AsyncRun* run, Done done);
  Status ReleaseCallable(int64_t callable);

  // Sets up a partial run (partial_run.h) and returns its handle. A partial run that is never
  // finished ends with the session, or at the session's time limit. `hold` is kept until the step
  // has ended.
  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec);
  using SetUp = absl::AnyInvocable<void(StatusOr<std::string>) &&>;
  void SetUpPartialRunAsync(const CallableSpec& spec, SetUp done,
                            std::shared_ptr<void> hold = nullptr);
  // Runs one instalment. If it exceeds its timeout or is cancelled, the whole step ends.
  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches, std::vector<Tensor>* outputs);
  void RunPartialAsync(const std::string& handle, AsyncRun* run, Done done);

  std::vector<DeviceInfo> devices() const;

  // How long a prepared step took, and how long it is predicted to take, based on measured costs.
  struct StepCosts {
    CallableSpec names;
    uint64_t executions = 0;  // number of executions that were timed
    int64_t median_ns = 0;    // median time of the last executions
    PlacementReport predicted;
    MemoryReport memory;
    Status status;  // why nothing is predicted
  };
  // Predicts the costs of at most `steps_max` steps. Takes first those that have used the most time
  // (the median time multiplied by the number of executions), then those that were never timed.
  // Compiles each step, which takes as long as preparing it. Stops before the next step if
  // `goes_on` returns false or the session has been closed.
  std::vector<StepCosts> PredictSteps(size_t steps_max, absl::FunctionRef<bool()> goes_on);
  // Returns all measured costs; null if nothing was measured.
  std::shared_ptr<const CostTable> costs() const { return costs_.Get(); }
  // Ends the running steps with `why`, waits for them, and ends the session in all tasks. Frees the
  // graph and the prepared steps, even if shared pointers keep the session itself.
  Status Close(const Status& why);
  Status Close();

  // Notes that a client has called from `client`, the address of its connection; "" for a client
  // in this process, whose session is never idle.
  void NoteClientCall(const std::string& client) { activity_->NoteCall(client); }
  // Notes that the session is in use if the connection of its client is in `connected`.
  void NoteConnectedClient(const absl::flat_hash_set<std::string>& connected) {
    activity_->NoteConnected(connected);
  }
  // Returns the nanoseconds since the last call, or since NoteConnectedClient last found the
  // client's connection alive; 0 while a step runs. A partial run between two instalments does not
  // count as running: a client that has gone may leave one behind.
  int64_t idle_ns() const;
  // The following are for status reports. running() does not contain steps that have only one part,
  // in the master's own process.
  int64_t created_ns() const { return created_ns_; }
  std::string client() const { return activity_->client(); }
  uint64_t steps_begun() const { return steps_->begun(); }
  std::vector<std::shared_ptr<const MasterStep>> running_steps() const { return steps_->running(); }
  int64_t version() const {
    ReaderMutexLock lock(graph_mu_);
    return version_;
  }

 private:
  using Prepared = std::shared_ptr<PreparedStep>;

  explicit MasterSession(Options options);
  Status CreateInTasks();
  void WatchTasks();
  void DeleteInTasks();

  // Functions that prepare steps.
  void AwaitPrepared(const Prepared& step, absl::Span<const Tensor> feeds, Done done);
  // `fed_shapes`: the shapes of the feeds for which the step is prepared; empty: not known yet.
  void Prepare(const Prepared& step, std::vector<PartialShape> fed_shapes = {});
  void Register(const Prepared& step, std::vector<Partition> partitions);
  void EndPreparing(const Prepared& step, Status status);
  StatusOr<CompileOptions> OptionsOf(const PreparedStep& step) const;
  StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const PreparedStep& step) const;
  StatusOr<std::vector<Partition>> CompileStep(const PreparedStep& step, CompileReport* report);
  StatusOr<std::vector<Partition>> CompileWith(const PreparedStep& step, CompileOptions options,
                                               CompileReport* report);
  std::vector<Prepared> AllPrepared();
  // Compiles `step`, and sets its fields about feeds, costs and placement. `placement` may be null.
  StatusOr<std::vector<Partition>> CompileNew(PreparedStep* step, PlacementReport* placement);
  StatusOr<std::vector<PreparedStep::Feed>> FeedsOf(const PreparedStep& step) const;
  void LogPlacement(const std::vector<Partition>& partitions) const;
  // Returns the graphs of the step's partitions.
  StatusOr<PreparedStep::Graphs> PartitionGraphs(const PreparedStep& step);
  // Returns the same graphs, which are compiled once and then kept in the step. Null if that fails.
  std::shared_ptr<const PreparedStep::Graphs> KeptGraphs(PreparedStep& step);
  // Schedules a new placement of the step on the pool, for feeds of these shapes. The old prepared
  // step is used until the new one is ready.
  void PlaceAgain(const Prepared& step, std::vector<PartialShape> fed_shapes);
  // Places the step anew if it was compiled for feeds of another size. Does so at most once for
  // each step.
  void AdaptToFeeds(const Prepared& step, absl::Span<const Tensor> feeds);
  void Replace(const PreparedStep& step, const Prepared& anew);
  int64_t MemoryLimitOf(const PreparedStep& step) const;
  // Returns whether the step was compiled to fit the memory limit with smaller feeds than these, or
  // without regard to the limit.
  bool Outgrows(const PreparedStep& step, absl::Span<const Tensor> feeds) const;
  // Prepares the step for feeds of these sizes, and replaces the old prepared step by the new one.
  using UseLarger = absl::AnyInvocable<void(StatusOr<Prepared>) &&>;
  void PrepareLarger(const Prepared& step, absl::Span<const Tensor> feeds, UseLarger use);

  // Functions that run steps.
  Status RunPrepared(const Prepared& step, const RunOptions& options,
                     absl::Span<const Tensor> feeds, std::vector<Tensor>* outputs,
                     RunMetadata* metadata);
  Status RunLocal(const PreparedStep& step, const RunOptions& options,
                  absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                  StepStatsCollector* stats);
  // Why an execution is measured although its client has not asked for that.
  struct Measuring {
    StepSampling::Sample sample = StepSampling::Sample::kNone;
    bool cost_graph = false;  // fill RunMetadata::cost_graph
    std::shared_ptr<StepRecorder::Recording> recording = nullptr;
    int64_t begun_wall_ns = 0;  // set only if there is a recording
    bool any() const {
      return cost_graph || recording != nullptr || sample != StepSampling::Sample::kNone;
    }
  };
  void AwaitStep(const Wait& wait) const;
  Measuring BeginExecution(PreparedStep* step) const;
  MeasuredCosts::ClocksAhead ClocksAhead() const;
  int64_t WallNanos() const { return options_.services.env->WallMicros() * 1'000; }
  Status Finished(const Prepared& step, const RunOptions& options, Status status,
                  const Measuring& measuring, StepStatsCollector* stats,
                  std::vector<Tensor>* outputs, RunMetadata* metadata);
  void StartAsync(const Prepared& step, AsyncRun* run, Done done);
  void StartFitting(const Prepared& step, AsyncRun* run, Done done);
  void FreeGraph();
  int64_t DeadlineOf(const RunOptions& options, bool several_tasks) const;
  int64_t TimeoutMs(int64_t otherwise) const;

  const Options options_;
  const std::shared_ptr<SessionTasks> tasks_;
  std::atomic<uint64_t> next_graph_{1};
  const int64_t created_ns_;
  const std::shared_ptr<ClientActivity> activity_;
  const std::shared_ptr<SessionSteps> steps_;
  const std::shared_ptr<PartialRuns> partial_runs_;

  // Locked before the mutexes of placement_ and costs_.
  mutable SharedMutex graph_mu_;
  Graph graph_ ABSL_GUARDED_BY(graph_mu_);
  int64_t version_ ABSL_GUARDED_BY(graph_mu_) = 0;

  StepCache cache_;
  MeasuredCosts costs_;
  const bool places_automatically_;
  AutoPlacement placement_;
  Callables callables_;
};

}  // namespace penstock

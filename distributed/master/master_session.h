// SPDX-License-Identifier: Apache-2.0
//
// MasterSession: the graph of one session, what has been compiled of it, and the steps that run:
// the part of a master that every session has, local or remote.
//
// A step of one part in this process runs on the caller's thread and adds next to nothing to the
// executor's time; every other step is a MasterStep. Thread-safe. Held by shared pointers: running
// steps keep it.
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
#include "distributed/master/master_step.h"
#include "distributed/master/measured_costs.h"
#include "distributed/master/partial_run.h"
#include "distributed/master/prepared_step.h"
#include "distributed/master/step_counters.h"
#include "distributed/master/step_recorder.h"
#include "distributed/session/session.h"

namespace penstock {

class Wait;  // core/base/join.h
class HealthMonitor;
struct CompileOptions;

class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  struct Options {
    std::string handle;  // unique in the cluster
    SessionOptions session;
    std::vector<SessionTask> tasks;  // the master's own, in this process, first
    MasterStep::Services services;
    HealthMonitor* health = nullptr;  // null: nobody watches
    const Registry* registry = nullptr;
    std::shared_ptr<StepCounters> counters = nullptr;  // null: nobody counts
    std::shared_ptr<StepRecorder> recorder = nullptr;  // null: nobody records
  };
  // Begins the session in all tasks; waits for them.
  static StatusOr<std::shared_ptr<MasterSession>> Create(Options options);
  ~MasterSession();

  const std::string& handle() const { return options_.handle; }
  const SessionOptions& options() const { return options_.session; }
  const std::vector<SessionTask>& tasks() const { return tasks_->list; }

  // Changes the graph by `add`, which leaves it as it was if it fails. Returns the new version.
  // With `expected_version` >= 0, Aborted unless that is the present one.
  StatusOr<int64_t> Extend(int64_t expected_version, absl::FunctionRef<Status(Graph*)> add);

  // Ends when the step's outputs are there. Feeds and fetches are in the order of the names.
  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata);

  // As Run, for callers that have no thread to spare: the pool prepares and runs the step.
  // Borrowed until `done`. Of a callable, the options are those it was made with, but for
  // `cancellation`.
  struct AsyncRun {
    RunOptions options;
    Feeds feeds;  // of a callable: without names
    std::vector<std::string> fetches;
    std::vector<std::string> targets;
    std::vector<Tensor> outputs;
    RunMetadata metadata;

    // The session's own.
    std::vector<Tensor> values;
    StepStatsCollector stats;
  };
  void RunAsync(AsyncRun* run, Done done);

  // Callables. They are forgotten with the session. `options` hold for RunCallableAsync.
  StatusOr<int64_t> MakeCallable(const CallableSpec& spec, const RunOptions& options = {});
  Status RunCallable(int64_t callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata);
  void RunCallableAsync(int64_t callable, AsyncRun* run, Done done);
  Status ReleaseCallable(int64_t callable);

  // Steps in instalments: see partial_run.h. One that is never finished ends with the session, or
  // at the session's time limit. Returns its handle. `hold` is kept until the step has ended.
  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec);
  using SetUp = absl::AnyInvocable<void(StatusOr<std::string>) &&>;
  void SetUpPartialRunAsync(const CallableSpec& spec, SetUp done,
                            std::shared_ptr<void> hold = nullptr);
  // One instalment. At its time limit, or when it is cancelled, the whole step ends.
  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches, std::vector<Tensor>* outputs);
  void RunPartialAsync(const std::string& handle, AsyncRun* run, Done done);

  std::vector<DeviceInfo> devices() const;

  // How long a prepared step took, and how long it is predicted to take by what was measured.
  struct StepCosts {
    CallableSpec names;
    uint64_t executions = 0;  // that were timed
    int64_t median_ns = 0;    // of the last ones
    PlacementReport predicted;
    MemoryReport memory;
    Status status;  // why nothing is predicted
  };
  // Predicts at most `steps_max` steps: those that have taken the most time, by the median of the
  // executions that were timed and the number of all; then those that were never timed. Compiles
  // each, which takes as long as preparing it; ends before the next one when `goes_on` is false or
  // the session has been closed.
  std::vector<StepCosts> PredictSteps(size_t steps_max, absl::FunctionRef<bool()> goes_on);
  // All that was measured; null: nothing.
  std::shared_ptr<const CostTable> costs() const { return costs_.Get(); }
  // Ends the steps with `why`, waits for them and ends the session in all tasks. Frees the graph
  // and what was compiled of it, though the session may be held for longer.
  Status Close(const Status& why);
  Status Close();

  // Notes that a client has called from `client`, the address of its connection; "" for a client
  // in this process, whose session is never idle.
  void CalledFrom(const std::string& client);
  // The session is in use if its client's connection is among those that are alive.
  void CheckClient(const absl::flat_hash_set<std::string>& connected);
  // Returns the nanoseconds since the last call, or since CheckClient last found the client's
  // connection alive; 0 while a step runs. A partial run between two instalments does not count as
  // running: a client that has gone leaves it behind.
  int64_t idle_ns() const;
  // For inspection. Steps of one part in the master's own process are not among the running ones.
  int64_t created_ns() const { return created_ns_; }
  std::string client() const;
  uint64_t steps_begun() const { return steps_begun_.load(std::memory_order_relaxed); }
  std::vector<std::shared_ptr<const MasterStep>> running_steps() const;
  int64_t version() const {
    ReaderMutexLock lock(graph_mu_);
    return version_;
  }

 private:
  using Prepared = std::shared_ptr<PreparedStep>;
  struct LocalStep {
    Cancellation cancellation;
    const PreparedStep* running = nullptr;  // null: idle
  };

  explicit MasterSession(Options options);
  Status BeginInTasks();
  void WatchTasks();
  void EndInTasks();

  // Preparing.
  void AwaitPrepared(const Prepared& step, absl::Span<const Tensor> feeds, Done done);
  // `fed_shapes`: of the values that the step is prepared for; empty: not known yet.
  void Prepare(const Prepared& step, std::vector<PartialShape> fed_shapes = {});
  void Register(const Prepared& step, std::vector<Partition> partitions);
  void EndPreparing(const Prepared& step, Status status);
  StatusOr<CompileOptions> OptionsOf(const PreparedStep& step) const;
  StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const PreparedStep& step) const;
  StatusOr<std::vector<Partition>> CompileStep(const PreparedStep& step, CompileReport* report);
  StatusOr<std::vector<Partition>> CompileWith(const PreparedStep& step, CompileOptions options,
                                               CompileReport* report);
  std::vector<Prepared> AllPrepared();
  // Compiles `step` and sets what it says of feeds, costs and placement. `placement` may be null.
  StatusOr<std::vector<Partition>> CompileNew(PreparedStep* step, PlacementReport* placement);
  StatusOr<std::vector<PreparedStep::Feed>> FeedsOf(const PreparedStep& step) const;
  void LogPlacement(const std::vector<Partition>& partitions) const;
  // The graphs of the partitions that run.
  StatusOr<PreparedStep::Graphs> PartitionGraphs(const PreparedStep& step);
  // As above, compiled once in the step's life. Null if that fails.
  std::shared_ptr<const PreparedStep::Graphs> KeptGraphs(PreparedStep& step);
  // Schedules a new placement of the step on the pool, for feeds of these shapes. The step runs as
  // it is until the new one is ready.
  void PlaceAnew(const Prepared& step, std::vector<PartialShape> fed_shapes);
  // Places the step anew if it was compiled for feeds of another size: once in its life.
  void AdaptTo(const Prepared& step, absl::Span<const Tensor> feeds);
  void Replace(const PreparedStep& step, const Prepared& anew);
  int64_t MemoryLimitOf(const PreparedStep& step) const;
  // Whether the step was fitted to the memory limit for smaller feeds, or not at all.
  bool Outgrows(const PreparedStep& step, absl::Span<const Tensor> feeds) const;
  // Prepares the step for feeds of these sizes and puts it in the place of the old one.
  using UseLarger = absl::AnyInvocable<void(StatusOr<Prepared>) &&>;
  void PrepareLarger(const Prepared& step, absl::Span<const Tensor> feeds, UseLarger use);

  // Running.
  Status RunPrepared(const Prepared& step, const RunOptions& options,
                     absl::Span<const Tensor> feeds, std::vector<Tensor>* outputs,
                     RunMetadata* metadata);
  Status RunLocal(const PreparedStep& step, const RunOptions& options,
                  absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                  StepStatsCollector* stats);
  // Why an execution is measured, beside the client's own wish.
  struct Measuring {
    StepSampling::Sample sample = StepSampling::Sample::kNone;
    bool cost_graph = false;  // fill RunMetadata::cost_graph
    std::shared_ptr<StepRecorder::Recording> recording = nullptr;
    int64_t begun_wall_ns = 0;  // only with a recording
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
  void StartStep(const Prepared& step, const MasterStep::Args& args, Done done);
  void StartPartial(const Prepared& step, SetUp done, std::shared_ptr<void> hold);
  StatusOr<std::shared_ptr<PartialRun>> FindPartial(const std::string& handle);
  void ForgetPartial(const std::string& handle);
  void StartAsync(const Prepared& step, AsyncRun* run, Done done);
  void StartFitting(const Prepared& step, AsyncRun* run, Done done);
  Status CheckOpen() const;
  void FreeGraph();
  Status CheckTasks(const PreparedStep& step) const;
  int64_t DeadlineOf(const RunOptions& options, bool several_tasks) const;
  int64_t NextStepId();
  // Returns `why` with the names of the step that it ends.
  static Status WhileRunning(const Status& why, const PreparedStep& step);
  // Returns a text that names the running steps, and the tasks in which they run.
  std::string RunningText() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(running_mu_);
  StatusOr<LocalStep*> TakeLocalStep(const PreparedStep& step);
  void ReturnLocalStep(LocalStep* step);
  void StepEnded(int64_t id, bool partial, const Status& status);
  void TaskLost(const TaskId& task, const Status& why);
  struct Callable {
    Prepared step;
    RunOptions options;
  };
  StatusOr<Callable> FindCallable(int64_t callable);
  int64_t TimeoutMs(int64_t otherwise) const;
  bool AnyRunning() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(running_mu_);

  const Options options_;
  const std::shared_ptr<SessionTasks> tasks_;
  const uint64_t step_id_base_;
  std::atomic<uint64_t> steps_begun_{0};
  std::atomic<uint64_t> next_graph_{1};
  std::atomic<int64_t> last_used_ns_{0};
  const int64_t created_ns_;
  mutable Mutex client_mu_;
  std::string client_ ABSL_GUARDED_BY(client_mu_);

  mutable SharedMutex graph_mu_;
  Graph graph_ ABSL_GUARDED_BY(graph_mu_);
  int64_t version_ ABSL_GUARDED_BY(graph_mu_) = 0;

  StepCache cache_;
  MeasuredCosts costs_;
  const bool places_automatically_;
  AutoPlacement placement_;
  Mutex callables_mu_;
  std::map<int64_t, Callable> callables_ ABSL_GUARDED_BY(callables_mu_);
  int64_t next_callable_ ABSL_GUARDED_BY(callables_mu_) = 1;
  Mutex partial_mu_;
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_
      ABSL_GUARDED_BY(partial_mu_);  // by handle

  mutable Mutex running_mu_;
  Condition none_running_;
  bool closed_ ABSL_GUARDED_BY(running_mu_) = false;
  std::vector<std::unique_ptr<LocalStep>> local_steps_ ABSL_GUARDED_BY(running_mu_);
  std::vector<LocalStep*> idle_local_steps_ ABSL_GUARDED_BY(running_mu_);
  std::map<int64_t, std::shared_ptr<MasterStep>> steps_ ABSL_GUARDED_BY(running_mu_);
  size_t partial_steps_ ABSL_GUARDED_BY(running_mu_) = 0;  // of steps_
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// MasterSession: one session on its master, for local and remote clients. It creates and deletes
// the session in its tasks, and runs steps: a step that has only one part, in this process, runs on
// the caller's thread with hardly any overhead; every other step is a MasterStep.
//
// The state of a session is in objects of other classes: SessionGraph, PreparedSteps, SessionSteps
// (the steps that run), PartialRuns and ClientActivity. Thread-safe: MasterSession has no lock, and
// none of these classes takes another one's lock while it holds its own. Held by shared pointers:
// the steps that it runs keep it alive, except partial runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "core/compiler/pass/compile_report.h"
#include "distributed/master/client_activity.h"
#include "distributed/master/master_step.h"
#include "distributed/master/partial_runs.h"
#include "distributed/master/prepared_step.h"
#include "distributed/master/prepared_steps.h"
#include "distributed/master/session_graph.h"
#include "distributed/master/session_steps.h"
#include "distributed/master/step_counters.h"
#include "distributed/master/step_measuring.h"
#include "distributed/master/step_recorder.h"
#include "distributed/session/session.h"

namespace penstock {

class Wait;  // see core/base/join.h
class HealthMonitor;

class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  struct Options {
    std::string handle;  // unique in the cluster
    SessionOptions session;
    std::vector<SessionTask> tasks;  // the first one is the master's own task, in this process
    MasterStep::Services services;
    HealthMonitor* health = nullptr;  // null: tasks are not watched
    const Registry* registry = nullptr;
    std::shared_ptr<StepCounters> counters = nullptr;  // null: steps are not counted
    std::shared_ptr<StepRecorder> recorder = nullptr;  // null: steps are not recorded
  };
  // Creates the session in all tasks, and waits until all have answered. InvalidArgument if an
  // option is not valid; else the first error of a task.
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

  // The arguments of a step that runs on the pool, so that it blocks no thread of the caller.
  // Borrowed until `done`. A callable uses the options with which it was made, except for
  // `cancellation`.
  struct AsyncRun {
    RunOptions options;
    Feeds feeds;  // null unless the step is a callable, which is run without names
    std::vector<std::string> fetches;
    std::vector<std::string> targets;
    std::vector<Tensor> outputs;
    RunMetadata metadata;

    // Used by the session; the caller does not set them.
    std::vector<Tensor> values;
    StepStatsCollector stats;
  };
  void RunAsync(AsyncRun* run, Done done);

  // Make, run and release callables. They end with the session. RunCallableAsync uses the `options`
  // of MakeCallable. InvalidArgument if no callable has the handle `callable`.
  StatusOr<int64_t> MakeCallable(const CallableSpec& spec, const RunOptions& options = {});
  Status RunCallable(int64_t callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata);
  void RunCallableAsync(int64_t callable, AsyncRun* run, Done done);
  Status ReleaseCallable(int64_t callable);

  // Sets up a partial run (partial_run.h) and returns its handle. A partial run that is never
  // finished ends with the session, at the session's time limit, or by EndUnusedPartialRuns.
  // `hold`: an object that is kept alive until the step has ended.
  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec);
  using SetUp = absl::AnyInvocable<void(StatusOr<std::string>) &&>;
  void SetUpPartialRunAsync(const CallableSpec& spec, SetUp done,
                            std::shared_ptr<void> hold = nullptr);
  // Runs one instalment. If it exceeds its timeout or is cancelled, the whole step ends.
  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches, std::vector<Tensor>* outputs);
  void RunPartialAsync(const std::string& handle, AsyncRun* run, Done done);
  // Ends a partial run with `why`, without waiting, because its client does not have the handle.
  void EndPartialRun(const std::string& handle, const Status& why);
  // Ends the partial runs for which no instalment has run for `unused_ns` (PartialRuns::EndUnused).
  void EndUnusedPartialRuns(int64_t unused_ns) { partial_runs_->EndUnused(unused_ns); }

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
  std::shared_ptr<const CostTable> costs() const { return graph_->costs(); }
  // Ends the running steps with `why`, waits for them, and ends the session in all tasks. Frees the
  // graph and the prepared steps, even if shared pointers keep the session itself.
  Status Close(const Status& why);
  // Closes the session for its client: running steps end with Cancelled.
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
  // The following are for status reports. running_steps() does not contain steps that have only one
  // part, in the master's own process.
  int64_t created_ns() const { return created_ns_; }
  std::string client() const { return activity_->client(); }
  uint64_t steps_begun() const { return steps_->begun(); }
  std::vector<std::shared_ptr<const MasterStep>> running_steps() const { return steps_->running(); }
  int64_t version() const { return graph_->version(); }

 private:
  using Prepared = std::shared_ptr<PreparedStep>;

  explicit MasterSession(Options options);
  Status CreateInTasks();
  void WatchTasks();
  void DeleteInTasks();

  // Functions that run steps.
  Status RunPrepared(const Prepared& step, const RunOptions& options,
                     absl::Span<const Tensor> feeds, std::vector<Tensor>* outputs,
                     RunMetadata* metadata);
  Status RunLocal(const PreparedStep& step, const RunOptions& options,
                  absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                  StepStatsCollector* stats);
  void AwaitStep(const Wait& wait) const;
  void StartAsync(const Prepared& step, AsyncRun* run, Done done);
  void StartWithinLimit(const Prepared& step, AsyncRun* run, Done done);
  int64_t DeadlineOf(const RunOptions& options, bool several_tasks) const;
  int64_t TimeoutMs(int64_t default_ms) const;

  const Options options_;
  const std::shared_ptr<SessionTasks> tasks_;
  const int64_t created_ns_;
  const std::shared_ptr<ClientActivity> activity_;
  const std::shared_ptr<SessionSteps> steps_;
  const std::shared_ptr<PartialRuns> partial_runs_;
  const std::shared_ptr<SessionGraph> graph_;
  const std::shared_ptr<PreparedSteps> prepared_;
  const StepMeasuring measuring_;
};

}  // namespace penstock

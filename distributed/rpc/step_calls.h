// SPDX-License-Identifier: Apache-2.0
//
// StepCalls: RunGraph and its answer as messages of the transport, between a master and a worker
// that are connected in both directions. Over shared memory, a step then needs no gRPC call.
//
// Two tasks connect when a master first runs a step on a worker. Until then, and while the
// connection is lost, RunGraphStream carries the calls. A task has one StepCalls, for the steps of
// its master and for the steps that its worker runs for other masters. Thread-safe; no lock is held
// while the transport or a callback is called.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/op/task_name.h"
#include "distributed/collective/task_links.h"
#include "distributed/transport/transport.h"
#include "proto/penstock/worker.pb.h"

namespace penstock {

class StepCalls final : public collective::LinkListener {
 public:
  using Ended = absl::AnyInvocable<void(const Status&, wire::RunGraphResponse&) &&>;
  using Answer = std::function<void(wire::RunGraphResponse)>;
  // The minimum time between two attempts to connect to a task.
  static constexpr int64_t kRetryNanos = 1'000'000'000;

  // Borrows all arguments. Before destruction, `transport` must have been stopped and all steps
  // must have ended.
  StepCalls(const TaskId& self, Transport& transport, Env& env);

  // Worker: sets two functions. `run` begins a step and calls `Answer` when the step ends (the
  // answer may lack the step's id). `abort` aborts a step whose master is lost. Call this before
  // the transport serves.
  void Serve(std::function<void(const wire::RunGraphRequest&, Answer)> run,
             std::function<void(int64_t step_id)> abort);
  // Returns the receiver for the step ids of kStepsOfCalls.
  TaskSteps& steps() { return links_; }
  const TaskId& self() const { return self_; }

  // Connects to `task`, unless the two tasks are connected or the last attempt was less than
  // kRetryNanos ago. The other task has to do the same. Does nothing while another incarnation of
  // the task is connected: that process may be frozen and replaced by its follower, and must not
  // get messages that are meant for the follower.
  void Connect(const TaskId& task);
  // Master: sends a request to a worker. `ended` is called once: with the answer, or with an error
  // when the worker is lost or the step abandoned. Returns false, and does not take `ended`, if
  // this task is not connected to the incarnation that the request names.
  [[nodiscard]] bool Run(const TaskName& worker, const wire::RunGraphRequest& request,
                         Ended* ended);
  // Master: ends the wait for a step with Cancelled. Does nothing if the step does not run.
  void Abandon(int64_t step_id);

 private:
  // Implements LinkListener:
  void Received(const TaskName& from, const HashedKey& key, Tensor value) override;
  void Connected(const TaskName& task) override {}
  void Lost(const TaskName& task, const Status& why) override;

  void Begin(const TaskName& master, const wire::RunGraphRequest& request);
  void AnswerTo(const TaskName& master, const wire::RunGraphResponse& answer);
  void Answered(const TaskName& worker, wire::RunGraphResponse& answer);
  const HashedKey& KeyTo(const TaskName& task, const char* what);

  const TaskId self_;
  Env& env_;
  collective::TaskLinks links_;
  std::function<void(const wire::RunGraphRequest&, Answer)> run_;
  std::function<void(int64_t)> abort_;

  Mutex mu_;
  // The incarnation of each connected task.
  std::map<TaskName, uint64_t> connected_ ABSL_GUARDED_BY(mu_);
  std::map<TaskName, int64_t> tried_ns_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<TaskName, std::string>, HashedKey> keys_ ABSL_GUARDED_BY(mu_);
  // For the steps of this task's master: the requests without an answer yet, by step and worker.
  std::map<std::pair<int64_t, TaskName>, Ended> running_ ABSL_GUARDED_BY(mu_);
  // For the steps that this task's worker runs: their ids, by master.
  std::map<TaskName, std::set<int64_t>> begun_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// StepCalls: RunGraph and its answer as messages of the transport, between a master and a worker
// that are connected in both directions. A null step over shared memory then needs no gRPC.
//
// Two tasks connect when a master first runs a step on a worker; until then, and whenever they have
// lost each other, RunGraphStream carries the calls. Both ends of one StepCalls belong to a task:
// it may be the master of some steps and a worker in others. Thread-safe; no lock is held while
// the transport or a callback is called.
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
  // The least time between two attempts to connect to a task.
  static constexpr int64_t kRetryNanos = 1'000'000'000;

  // All borrowed. `transport` must have been stopped, and all steps must have ended, before the
  // destructor.
  StepCalls(const TaskId& self, Transport& transport, Env& env);

  // Worker: what begins a step and calls `Answer` when it ends (the answer need not contain the
  // step's id), and what aborts one whose master is lost. To be called before the transport serves.
  void Serve(std::function<void(const wire::RunGraphRequest&, Answer)> run,
             std::function<void(int64_t step_id)> abort);
  // The receiver for the step ids of kStepsOfCalls.
  TaskSteps& steps() { return links_; }
  const TaskId& self() const { return self_; }

  // Connects to `task`, unless it is connected or was tried less than kRetryNanos ago. The other
  // task has to do the same. Does nothing while another process of that name is connected: it may
  // be frozen, and a follower have taken its place; the messages must not go to the frozen one.
  void Connect(const TaskId& task);
  // Master: sends a request to a worker. `ended` is called once, with the answer or when the worker
  // is lost. If this is not connected to the incarnation that the request names, returns false and
  // takes neither argument.
  [[nodiscard]] bool Run(const TaskName& worker, const wire::RunGraphRequest& request,
                         Ended* ended);
  // Master: ends the wait for a step with Cancelled. Does nothing if it does not run.
  void Abandon(int64_t step_id);

 private:
  // LinkListener:
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
  // The incarnation of each task that this one has connected to, and not lost since.
  std::map<TaskName, uint64_t> connected_ ABSL_GUARDED_BY(mu_);
  std::map<TaskName, int64_t> tried_ns_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<TaskName, std::string>, HashedKey> keys_ ABSL_GUARDED_BY(mu_);
  // As master: steps whose answers have not come, by step and worker.
  std::map<std::pair<int64_t, TaskName>, Ended> running_ ABSL_GUARDED_BY(mu_);
  // As worker: steps that run here, by master.
  std::map<TaskName, std::set<int64_t>> begun_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

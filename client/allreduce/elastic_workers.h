// SPDX-License-Identifier: Apache-2.0
//
// ElasticWorkers: the workers of an elastic training (elastic_group.h) as one of them sees them:
// their tasks, and whether they take part in the training now. A worker takes part if its task
// answers and its client is present (presence.h).
//
// The functions that ask other workers are thread-safe; the others are called by the training's
// thread. Borrows the options.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/allreduce/presence.h"
#include "client/session.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"

namespace penstock::client {

struct ElasticOptions {
  // The tasks of all workers, in order of name: "/job:worker/task:0". All workers pass the same.
  std::vector<std::string> workers;
  int worker = 0;              // the index of this worker in `workers`
  int min_workers = 0;         // minimum size of the group; 0: more than half of `workers`
  int64_t group_key = 1;       // must differ between trainings that share the cluster
  double ask_seconds = 1;      // how long to wait for a task's answer
  double form_seconds = 5;     // how long members wait for each other when a group forms
  double rejoin_seconds = 10;  // the interval at which the chief asks for lost workers
  // If a worker is present, but does not join while a group forms, the others leave it out of new
  // groups for this long.
  double pause_seconds = 30;
  // How long a worker counts as present after the last announcement of its client. A client
  // announces itself every third of this time.
  double present_seconds = 10;
  std::string target = "";  // the target of this worker's sessions
  // Makes sessions with this worker's task; null: with `target`.
  std::function<StatusOr<std::unique_ptr<SessionInterface>>(const SessionOptions&)> new_session =
      nullptr;
  Env* env = &Env::Real();
  Scheduler* scheduler = &Scheduler::Real();  // must use the clock of `env`
};

class ElasticWorkers {
 public:
  explicit ElasticWorkers(const ElasticOptions& options);

  // The number of workers, and a worker's task.
  int size() const { return static_cast<int>(options_.workers.size()); }
  const std::string& task(int worker) const { return options_.workers[worker]; }
  // Returns the tasks of all workers that are not in `workers`, which is sorted, as text.
  std::string Missing(const std::vector<int>& workers) const;

  // Announce this worker's client in its task, or withdraw the announcement.
  Status Announce() { return presence_.Announce(); }
  void Withdraw() { presence_.Withdraw(); }

  // Makes a session as the options say.
  StatusOr<std::unique_ptr<SessionInterface>> NewSession(const SessionOptions& options) const;
  // Asks all of `workers` at the same time, for a few ask_seconds at most. Returns the incarnations
  // of the tasks of those that take part.
  std::vector<std::optional<uint64_t>> AskIncarnations(const std::vector<int>& workers) const;
  // Returns whether the worker's task answers that its client is gone.
  bool ClientIsGone(int worker) const;

 private:
  std::string PresenceName() const;
  StatusOr<std::unique_ptr<SessionInterface>> NewShortSession(const std::string& task) const;
  StatusOr<uint64_t> AskIncarnation(const std::string& task) const;

  const ElasticOptions& options_;
  Presence presence_;
};

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// WorkerClocks: counts the steps that each worker of an asynchronous training has finished, and
// makes a worker wait while it is too far ahead of the slowest one (stale synchronous parallel, Ho
// et al. 2013).
//
//   Begin(worker) ─► the step's reads, work and updates ─► Advance(worker): clock + 1, then wait
//
// A worker counts from its first Begin or Advance on. It stops counting, so that no other worker
// waits for it, when
//   - it leaves (Leave), or the last of its holders is released (RemoveHolder);
//   - one of its steps ends without Advance, because it failed or its master was lost (StepEnded);
//   - it is the slowest worker, another one waits for it, and it has not moved its clock for the
//     shortest timeout of those that wait.
// At its next Begin or Advance it counts again, and gets the clock of the slowest other worker that
// counts. If no other worker counts, it keeps its own clock.
//
// A waiting Advance holds no thread. Each call takes a time of O(log workers), and as much for each
// wait that it ends. Thread-safe. Actions in a StateLog: "set" {worker, clock}. The log does not
// record which workers count, because that depends on sessions and steps, which do not continue on
// the store that replays the log. On that store, no worker counts until its next Begin or Advance.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "kernels/batching/alarm.h"
#include "kernels/data/blocking.h"

namespace penstock {

class WorkerClocks final : public Blocking {
 public:
  static constexpr char kType[] = "WorkerClocks";
  static constexpr int64_t kWorkersMax = 1 << 16;

  struct Advanced {
    int64_t clock = 0;  // the worker's clock after the step
    double waited_seconds = 0;
  };
  using Receive = absl::AnyInvocable<void(const Advanced&) &&>;
  struct Limits {
    int64_t bound = 0;  // how many steps the worker may be ahead of the slowest one; at least 0
    // How long the worker waits for a worker whose clock does not move. 0: as long as that worker
    // counts.
    int64_t timeout_ns = 0;
  };
  struct Snapshot {
    std::vector<int64_t> clocks;
    std::vector<bool> counts;  // whether the worker counts
  };

  // InvalidArgument unless `workers` is in [1, kWorkersMax].
  static StatusOr<std::shared_ptr<WorkerClocks>> Make(std::string name, int64_t workers);
  // Use Make, or let a StateReplayer make it. `clocks` has one entry for each worker.
  WorkerClocks(std::string name, const std::vector<int64_t>& clocks);

  // Sets the clock and the threads with which the resource measures timeouts; only the first call
  // has an effect. Must be called before Begin and Advance. Both objects must outlive the resource.
  // ResourceExhausted as from Alarm::Make.
  Status UseTime(Scheduler& threads, Env& env) ABSL_LOCKS_EXCLUDED(mu_);

  int64_t workers() const { return num_workers_; }
  // InvalidArgument unless `worker` is in [0, workers()).
  Status Check(int64_t worker) const;

  // The functions below REQUIRE that Check(worker) returns OK.

  // Announces that the worker begins the step of `origin`. `label`, such as the name of the
  // worker's task, names the worker in texts for people.
  void Begin(int64_t worker, const std::string& label, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Raises the worker's clock by one; the caller's step has made its updates. Then waits until the
  // clock is at most limits.bound ahead of the slowest worker that counts.
  void Advance(int64_t worker, const Limits& limits, Receive receive, const Caller& caller,
               Done done);
  // Announces that a step that has begun has ended. Does nothing if the Advance of the step has
  // succeeded.
  void StepEnded(int64_t worker, int64_t step_id) ABSL_LOCKS_EXCLUDED(mu_);
  void Leave(int64_t worker) ABSL_LOCKS_EXCLUDED(mu_);
  // Add or remove a holder: an object through which a session runs steps of the worker. A holder
  // does not make the worker count, but when its last holder is removed, the worker stops counting.
  void AddHolder(int64_t worker) ABSL_LOCKS_EXCLUDED(mu_);
  void RemoveHolder(int64_t worker) ABSL_LOCKS_EXCLUDED(mu_);

  Snapshot Read() const ABSL_LOCKS_EXCLUDED(mu_);

  std::string DebugString() const override ABSL_LOCKS_EXCLUDED(mu_);
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<Description> DescribeNow() const override ABSL_LOCKS_EXCLUDED(mu_);
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class AdvanceOperation;
  // A waiting Advance: the least clock of all workers that count with which the wait ends, and a
  // number of its own, so that waits end in the same order in each simulation.
  using WaitKey = std::pair<int64_t, uint64_t>;
  struct Worker {
    int64_t clock = 0;
    bool counts = false;
    int64_t moved_ns = 0;  // when the clock moved, a wait ended, or the worker began to count
    int holders = 0;
    std::vector<AdvanceOperation*> waiting;
    std::set<int64_t> steps;  // ids of the steps that have begun and not advanced
    std::string label;
  };

  int64_t NowNanos() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return env_ == nullptr ? 0 : env_->NowNanos();
  }
  void Set(int64_t worker, int64_t clock, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Join(int64_t worker, const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns whether a worker that counts has a clock below `least`.
  bool AnyBelow(int64_t least) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !counting_.empty() && counting_.begin()->first < least;
  }
  // Tries the new operation, and those whose waits are over.
  void Advance(Ended* ended) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // If the slowest worker's timeout has passed, stops counting it and writes a log message.
  // Otherwise sets the alarm for that time. Returns whether it stopped the worker. REQUIRES:
  // operations wait for the worker.
  bool StopSlowest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnAlarm() ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `change` under the lock. If `change` returns true, some operations need not wait any
  // more: then continues these operations.
  template <class Change>
  void ChangeAndAdvance(Change change) ABSL_LOCKS_EXCLUDED(mu_);
  // Stops counting the worker. Returns whether it counted before.
  bool StopCounting(int64_t worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string NameOf(int64_t worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Tensor> DescribeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t num_workers_;
  std::vector<Worker> workers_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<int64_t, int64_t>> counting_ ABSL_GUARDED_BY(mu_);  // (clock, worker)
  std::map<WaitKey, AdvanceOperation*> waits_ ABSL_GUARDED_BY(mu_);
  std::multiset<int64_t> timeouts_ns_ ABSL_GUARDED_BY(mu_);  // of the operations that wait
  uint64_t last_wait_ ABSL_GUARDED_BY(mu_) = 0;
  Env* env_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::unique_ptr<Alarm> alarm_ ABSL_GUARDED_BY(mu_);
  int64_t alarm_ns_ ABSL_GUARDED_BY(mu_) = Condition::kNever;  // when it rings
};

}  // namespace penstock

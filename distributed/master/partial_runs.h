// SPDX-License-Identifier: Apache-2.0
//
// PartialRuns: the partial runs (partial_run.h) of one session, by handle: begins them, and runs
// their instalments.
//
// Thread-safe. Held by shared pointers: pending instalments keep it alive. While mu_ is held, this
// class neither takes another lock nor destroys or calls a partial run, except for finished() and
// ended(), which lock the partial run's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/done.h"
#include "core/base/mutex.h"
#include "distributed/master/partial_run.h"
#include "distributed/master/prepared_step.h"
#include "distributed/master/session_steps.h"
#include "distributed/session/session.h"

namespace penstock {

class PartialRuns : public std::enable_shared_from_this<PartialRuns> {
 public:
  // The maximum number of unfinished partial runs.
  static constexpr size_t kRunsMax = 10'000;

  struct Options {
    std::string session;        // its handle
    std::string client_device;  // the device at which feeds enter
    MasterStep::Services services;
    std::shared_ptr<SessionSteps> steps;
  };
  explicit PartialRuns(Options options) : options_(std::move(options)) {}

  // Begins a partial run of `step`, which is ready, and returns its handle. The run ends at
  // `deadline_ns` if it is not finished before. `hold`: kept alive until the run has ended.
  // ResourceExhausted if there are kRunsMax unfinished runs.
  StatusOr<std::string> Begin(const std::shared_ptr<PreparedStep>& step, int64_t deadline_ns,
                              std::shared_ptr<void> hold) ABSL_LOCKS_EXCLUDED(mu_);
  // Runs one instalment, like PartialRun::Run. If it exceeds its timeout or is cancelled, the whole
  // step ends. `options.cancellation` and `outputs` are borrowed until `done`. FailedPrecondition
  // after the session was closed, InvalidArgument if there is no such partial run, Unimplemented if
  // `options` ask for a trace or graphs.
  void Run(const std::string& handle, const RunOptions& options, const Feeds& feeds,
           const std::vector<std::string>& fetches, std::vector<Tensor>* outputs, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends a partial run, whose client is gone, with `why`, and forgets it. Does not block. Does
  // nothing if there is no such run.
  void End(const std::string& handle, const Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends each partial run for which no instalment has run for `unused_ns`, with DeadlineExceeded:
  // its client may never have read the handle. The next instalment gets the error; if none comes
  // within `unused_ns` again, the partial run is forgotten. An unused run whose step has ended by
  // itself is forgotten at once. Does not block.
  void EndUnused(int64_t unused_ns) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets all partial runs. Does not end them.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    std::shared_ptr<PartialRun> run;
    int64_t used_ns = 0;  // when the run was set up, or an instalment last began or ended
    int instalments = 0;  // the number of those that run
  };
  Status Add(const std::string& handle, std::shared_ptr<PartialRun> run) ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<std::shared_ptr<PartialRun>> BeginInstalment(const std::string& handle)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndInstalment(const std::string& handle, const PartialRun& run) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes the partial run and returns it; null if there is none.
  std::shared_ptr<PartialRun> Take(const std::string& handle) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t NowNanos() const { return options_.services.env->NowNanos(); }

  const Options options_;
  Mutex mu_;
  std::map<std::string, Entry> runs_ ABSL_GUARDED_BY(mu_);  // by handle
};

}  // namespace penstock

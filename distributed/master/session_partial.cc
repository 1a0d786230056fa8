// SPDX-License-Identifier: Apache-2.0
//
// The methods of MasterSession that run steps in instalments.
#include <optional>
#include <utility>

#include "core/base/join.h"
#include "core/base/timeout.h"
#include "distributed/master/master_session.h"

namespace penstock {
namespace {

// The maximum number of unfinished partial runs of a session.
constexpr size_t kPartialRunsMax = 10'000;

// Ends a partial run when an instalment exceeds its timeout, or when the caller that waits for it
// gives up.
class Guard {
 public:
  Guard(std::shared_ptr<PartialRun> run, const RunOptions& options,
        const MasterStep::Services& services)
      : cancellation_(options.cancellation), timer_(services.timer) {
    // Ends the step on a thread of the pool: its end deregisters the timer and the cancellation,
    // which their own threads must not do.
    const auto end = [weak = std::weak_ptr(run), threads = services.threads](const Status& why) {
      threads->Schedule([weak, why] {
        if (const auto run = weak.lock()) run->cancellation().Cancel(why);
      });
    };
    if (cancellation_ != nullptr) {
      registered_ = cancellation_->Register(end, &token_);
      if (!registered_) end(cancellation_->status());
    }
    if (options.timeout_ms <= 0) return;
    const Status late = DeadlineExceeded("the partial run's tensors were not there within ",
                                         options.timeout_ms, " ms");
    timeout_ = timer_->Arm(services.env->NowNanos() + TimeoutNanos(options.timeout_ms),
                           [end, late] { end(late); });
  }
  ~Guard() {
    if (registered_) cancellation_->Deregister(token_);
    if (timeout_.has_value()) timer_->Disarm(*timeout_);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Cancellation* const cancellation_;
  DeadlineTimer* const timer_;
  Cancellation::Token token_ = 0;
  bool registered_ = false;
  std::optional<DeadlineTimer::Token> timeout_;
};

}  // namespace

StatusOr<std::string> MasterSession::SetUpPartialRun(const CallableSpec& spec) {
  StatusOr<std::string> handle = Internal("no handle");
  Wait wait(*options_.services.threads, "a partial run to be prepared");
  SetUpPartialRunAsync(spec, [&handle, done = wait.done()](StatusOr<std::string> made) mutable {
    handle = std::move(made);
    std::move(done)(OkStatus());
  });
  RETURN_IF_ERROR(wait.Get());
  return handle;
}

void MasterSession::SetUpPartialRunAsync(const CallableSpec& spec, SetUp done,
                                         std::shared_ptr<void> hold) {
  const Prepared step = cache_.GetPartial(spec);
  if (step->ready()) return StartPartial(step, std::move(done), std::move(hold));
  Done ready([self = shared_from_this(), step, done = std::move(done),
              hold = std::move(hold)](Status status) mutable {
    if (!status.ok()) return std::move(done)(std::move(status));
    self->StartPartial(step, std::move(done), std::move(hold));
  });
  if (!step->AwaitReady(std::move(ready))) return;
  options_.services.threads->Schedule([self = shared_from_this(), step] { self->Prepare(step); });
}

void MasterSession::StartPartial(const Prepared& step, SetUp done, std::shared_ptr<void> hold) {
  const int64_t id = steps_->NextId();
  const std::string handle = StrCat(absl::Hex(id, absl::kZeroPad16));
  const auto run = std::make_shared<PartialRun>(step, tasks()[0].devices[0].name.ToString());
  std::vector<std::shared_ptr<PartialRun>> ended;  // destroyed after the lock is released
  bool full = false;
  {
    MutexLock lock(partial_mu_);
    if (partial_runs_.size() >= kPartialRunsMax) {
      // Removes runs that ended at their deadline and were not used since.
      std::erase_if(partial_runs_, [&](auto& entry) {
        if (!entry.second->finished()) return false;
        ended.push_back(std::move(entry.second));
        return true;
      });
    }
    full = partial_runs_.size() >= kPartialRunsMax;
    if (!full) partial_runs_.emplace(handle, run);
  }
  if (full) {
    return std::move(done)(ResourceExhausted("session ", this->handle(), " has ", kPartialRunsMax,
                                             " partial runs that were not finished"));
  }
  std::shared_ptr<Step> own;
  steps_->Start(step,
                {.id = id,
                 .deadline_ns = DeadlineOf({}, true),
                 .cancellation = &run->cancellation(),
                 .own_step = &own},
                Done([run, hold = std::move(hold)](const Status& status) mutable {
                  // Released before the client learns of the end, because it may then begin another
                  // run.
                  hold = nullptr;
                  run->Ended(status);
                }));
  run->Begun(std::move(own));
  std::move(done)(handle);
}

StatusOr<std::shared_ptr<PartialRun>> MasterSession::FindPartial(const std::string& handle) {
  RETURN_IF_ERROR(steps_->CheckOpen());
  MutexLock lock(partial_mu_);
  const auto found = partial_runs_.find(handle);
  if (found == partial_runs_.end()) {
    return InvalidArgument("Must run PartialRunSetup before performing partial runs: '", handle,
                           "' is no partial run, or one that has ended");
  }
  return found->second;
}

void MasterSession::ForgetPartial(const std::string& handle) {
  std::shared_ptr<PartialRun> run;  // destroyed after the lock is released
  MutexLock lock(partial_mu_);
  const auto found = partial_runs_.find(handle);
  if (found == partial_runs_.end()) return;
  run = std::move(found->second);
  partial_runs_.erase(found);
}

Status MasterSession::RunPartial(const std::string& handle, const RunOptions& options,
                                 const Feeds& feeds, const std::vector<std::string>& fetches,
                                 std::vector<Tensor>* outputs) {
  AsyncRun run{.options = options, .feeds = feeds, .fetches = fetches};
  Wait wait(*options_.services.threads, "a part of a partial run");
  RunPartialAsync(handle, &run, wait.done());
  Status status = wait.Get();
  *outputs = std::move(run.outputs);
  return status;
}

void MasterSession::RunPartialAsync(const std::string& handle, AsyncRun* run, Done done) {
  const auto found = FindPartial(handle);
  if (!found.ok()) return std::move(done)(found.status());
  if (run->options.trace || run->options.partition_graphs) {
    return std::move(done)(Unimplemented("partial runs are neither traced nor shown"));
  }
  const std::shared_ptr<PartialRun> partial = *found;
  auto guard = std::make_unique<Guard>(partial, run->options, options_.services);
  partial->Run(run->feeds, run->fetches, &run->outputs,
               Done([self = shared_from_this(), partial, handle, run, guard = std::move(guard),
                     done = std::move(done)](Status status) mutable {
                 guard = nullptr;
                 if (partial->finished()) self->ForgetPartial(handle);
                 if (!status.ok()) run->outputs.clear();
                 std::move(done)(std::move(status));
               }));
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/partial_runs.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/timeout.h"

namespace penstock {
namespace {

// Ends a partial run when an instalment exceeds its timeout, or when the caller that waits for it
// gives up.
class InstalmentGuard {
 public:
  InstalmentGuard(std::shared_ptr<PartialRun> run, const RunOptions& options,
                  const MasterStep::Services& services)
      : cancellation_(options.cancellation), timer_(services.timer) {
    // Ends the step on a thread of the pool: the end of the step disarms the timer and deregisters
    // the cancellation, which the callbacks of these two must not do.
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
  ~InstalmentGuard() {
    if (registered_) cancellation_->Deregister(token_);
    if (timeout_.has_value()) timer_->Disarm(*timeout_);
  }
  InstalmentGuard(const InstalmentGuard&) = delete;
  InstalmentGuard& operator=(const InstalmentGuard&) = delete;

 private:
  Cancellation* const cancellation_;
  DeadlineTimer* const timer_;
  Cancellation::Token token_ = 0;
  bool registered_ = false;
  std::optional<DeadlineTimer::Token> timeout_;
};

}  // namespace

StatusOr<std::string> PartialRuns::Begin(const std::shared_ptr<PreparedStep>& step,
                                         int64_t deadline_ns, std::shared_ptr<void> hold) {
  const int64_t id = options_.steps->NextId();
  std::string handle = StrCat(absl::Hex(id, absl::kZeroPad16));
  const auto run = std::make_shared<PartialRun>(step, options_.client_device);
  RETURN_IF_ERROR(Add(handle, run));
  std::shared_ptr<Step> own;
  options_.steps->Start(step,
                        {.id = id,
                         .deadline_ns = deadline_ns,
                         .cancellation = &run->cancellation(),
                         .own_step = &own},
                        Done([run, hold = std::move(hold)](const Status& status) mutable {
                          // Releases the hold before the client learns of the end, because the
                          // client may then begin another run.
                          hold = nullptr;
                          run->Ended(status);
                        }));
  run->Begun(std::move(own));
  return handle;
}

Status PartialRuns::Add(const std::string& handle, std::shared_ptr<PartialRun> run) {
  std::vector<std::shared_ptr<PartialRun>> ended;  // destroyed after the lock is released
  MutexLock lock(mu_);
  if (runs_.size() >= kRunsMax) {
    // Removes runs that have failed, for example at their deadline, and were not used since, and
    // runs without feeds and fetches that have ended.
    std::erase_if(runs_, [&](auto& entry) {
      const PartialRun& own = *entry.second.run;
      if (!own.finished() || !own.ended()) return false;
      ended.push_back(std::move(entry.second.run));
      return true;
    });
  }
  if (runs_.size() >= kRunsMax) {
    return ResourceExhausted("session ", options_.session, " has ", kRunsMax,
                             " partial runs that were not finished");
  }
  runs_.emplace(handle, Entry{.run = std::move(run), .used_ns = NowNanos()});
  return OkStatus();
}

// Returns the partial run, and counts an instalment that EndInstalment must end.
StatusOr<std::shared_ptr<PartialRun>> PartialRuns::BeginInstalment(const std::string& handle) {
  RETURN_IF_ERROR(options_.steps->CheckOpen());
  MutexLock lock(mu_);
  const auto found = runs_.find(handle);
  if (found == runs_.end()) {
    return InvalidArgument("Must run PartialRunSetup before performing partial runs: '", handle,
                           "' is no partial run, or one that has ended");
  }
  ++found->second.instalments;
  found->second.used_ns = NowNanos();
  return found->second.run;
}

// Forgets the partial run if `run`, to which the handle belongs, is finished.
void PartialRuns::EndInstalment(const std::string& handle, const PartialRun& run) {
  std::shared_ptr<PartialRun> forgotten;  // destroyed after the lock is released
  const bool finished = run.finished();
  MutexLock lock(mu_);
  const auto found = runs_.find(handle);
  if (found == runs_.end()) return;
  --found->second.instalments;
  found->second.used_ns = NowNanos();
  if (!finished) return;
  forgotten = std::move(found->second.run);
  runs_.erase(found);
}

std::shared_ptr<PartialRun> PartialRuns::Take(const std::string& handle) {
  MutexLock lock(mu_);
  auto taken = runs_.extract(handle);
  return taken.empty() ? nullptr : std::move(taken.mapped().run);
}

void PartialRuns::End(const std::string& handle, const Status& why) {
  std::shared_ptr<PartialRun> run = Take(handle);
  if (run == nullptr) return;
  // On the pool, as in InstalmentGuard.
  options_.services.threads->Schedule(
      [run = std::move(run), why] { run->Cancel(why, Done([](const Status&) {})); });
}

void PartialRuns::EndUnused(int64_t unused_ns) {
  std::vector<std::shared_ptr<PartialRun>> forgotten;  // destroyed after the lock is released
  std::vector<std::pair<std::string, std::shared_ptr<PartialRun>>> unused;
  {
    MutexLock lock(mu_);
    const int64_t now = NowNanos();
    for (auto it = runs_.begin(); it != runs_.end();) {
      auto& [handle, entry] = *it;
      const bool is_unused = entry.instalments == 0 && now - entry.used_ns > unused_ns;
      if (is_unused && entry.run->ended()) {
        forgotten.push_back(std::move(entry.run));
        it = runs_.erase(it);
        continue;
      }
      if (is_unused) {
        entry.used_ns = now;
        unused.emplace_back(handle, entry.run);
      }
      ++it;
    }
  }
  for (auto& [handle, run] : unused) {
    const Status why = DeadlineExceeded("partial run ", handle, " of session ", options_.session,
                                        " was not used for ", unused_ns / 1'000'000'000, " s");
    // On the pool, as in InstalmentGuard.
    options_.services.threads->Schedule(
        [run = std::move(run), why] { run->Cancel(why, Done([](const Status&) {})); });
  }
}

void PartialRuns::Clear() {
  std::map<std::string, Entry> cleared;  // destroyed after the lock
  MutexLock lock(mu_);
  cleared.swap(runs_);
}

void PartialRuns::Run(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                      const std::vector<std::string>& fetches, std::vector<Tensor>* outputs,
                      Done done) {
  if (options.trace || options.partition_graphs) {
    return std::move(done)(Unimplemented("a partial run has neither a trace nor partition graphs"));
  }
  const auto found = BeginInstalment(handle);
  if (!found.ok()) return std::move(done)(found.status());
  const std::shared_ptr<PartialRun> run = *found;
  if (options.cancellation != nullptr && options.cancellation->cancelled()) {
    const Status why = options.cancellation->status();
    return run->Cancel(why, Done([self = shared_from_this(), run, handle, outputs, why,
                                  done = std::move(done)](Status status) mutable {
                         self->Take(handle);
                         outputs->clear();
                         // The step may have succeeded before it was cancelled.
                         std::move(done)(status.ok() ? why : std::move(status));
                       }));
  }
  auto guard = std::make_unique<InstalmentGuard>(run, options, options_.services);
  run->Run(feeds, fetches, outputs,
           Done([self = shared_from_this(), run, handle, outputs, guard = std::move(guard),
                 done = std::move(done)](Status status) mutable {
             guard = nullptr;
             self->EndInstalment(handle, *run);
             if (!status.ok()) outputs->clear();
             std::move(done)(std::move(status));
           }));
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/session_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error_origin.h"
#include "core/base/fault_point.h"
#include "core/base/log.h"
#include "core/base/timeout.h"
#include "distributed/collective/reserved_steps.h"
#include "distributed/master/health.h"

namespace penstock {
namespace {

Status Closed() { return FailedPrecondition("Session is closed."); }

const FaultPoint kSameSteps(FaultPoint::kBug, "session/step-ids-reused",
                            "each session gives its steps the same ids");

// Turns a counter into an id that looks random. Different inputs give different ids.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Returns "a step of 'a:0', 'b:0' and 3 more": its fetches and targets.
std::string NamesText(const CallableSpec& spec) {
  constexpr size_t kShownMax = 3;
  std::vector<std::string> names = spec.fetches;
  names.insert(names.end(), spec.targets.begin(), spec.targets.end());
  const size_t more = names.size() - std::min(names.size(), kShownMax);
  names.resize(names.size() - more);
  for (std::string& name : names) name = StrCat("'", name, "'");
  return StrCat("a step of ", absl::StrJoin(names, ", "),
                more > 0 ? StrCat(" and ", more, " more") : "");
}

// Returns `why` with the names of the step that it ends.
Status WithStepNames(const Status& why, const PreparedStep& step) {
  const char* const end =
      absl::EndsWith(why.message(), ".") ? " It was running " : "; it was running ";
  return WithMessage(why, StrCat(why.message(), end, NamesText(step.names())));
}

// If a task of the step is lost, returns the error of that task; else OK.
Status CheckTasks(const PreparedStep& step) {
  for (const PreparedStep::Part& part : step.parts) {
    if (part.task->health != nullptr && !part.task->health->ok()) {
      return part.task->health->status();
    }
  }
  return OkStatus();
}

}  // namespace

SessionSteps::SessionSteps(Options options)
    : options_(std::move(options)),
      id_base_(kSameSteps.Fires() ? 1 : options_.services.env->RandomU64()),
      none_running_(*options_.services.threads, "the end of a session's steps") {}

int64_t SessionSteps::NextId() {
  const uint64_t id = Mix(id_base_ + begun_.fetch_add(1, std::memory_order_relaxed));
  const auto step_id = static_cast<int64_t>(id);
  return id != 0 && !collective::IsReservedStep(step_id) ? step_id : NextId();
}

void SessionSteps::Start(const std::shared_ptr<PreparedStep>& step, const MasterStep::Args& args,
                         Done done) {
  Status refused = CheckTasks(*step);
  const bool partial = args.own_step != nullptr;
  const auto running = std::make_shared<MasterStep>(step, args, options_.services);
  if (refused.ok()) {
    MutexLock lock(mu_);
    if (closed_) {
      refused = Closed();
    } else {
      steps_.emplace(args.id, running);
      if (partial) ++partial_;
    }
  }
  if (!refused.ok()) return std::move(done)(std::move(refused));
  running->Start(Done([self = shared_from_this(), id = args.id, partial,
                       done = std::move(done)](Status status) mutable {
    self->Ended(id, partial, status);
    if (!status.ok()) self->LogFailed(id, status);
    std::move(done)(std::move(status));
  }));
}

void SessionSteps::Ended(int64_t id, bool partial, const Status& status) {
  std::shared_ptr<MasterStep> ended;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto it = steps_.find(id);
  ended = std::move(it->second);
  steps_.erase(it);
  if (partial) --partial_;
  options_.activity->NoteUse();
  const int64_t nanos = options_.services.env->NowNanos() - ended->begun_ns();
  if (options_.counters != nullptr) options_.counters->Ended(status, nanos);
  if (status.ok() && !partial) ended->prepared().times.Add(nanos);
  if (closed_) none_running_.NotifyAll();
}

// Logs a step that failed: as a warning if its client is in another process, else as information,
// because a client in this process receives the error anyway. The end of the input and a
// cancellation, which are usual ends of training, and failures in local sessions are logged only
// at the debug level.
void SessionSteps::LogFailed(int64_t id, const Status& status) const {
  const bool normal_end = absl::IsOutOfRange(status) || absl::IsCancelled(status);
  const std::string client = options_.activity->client();
  const LogLevel level = client.empty() ? LogLevel::kInfo : LogLevel::kWarning;
  Log({.level = normal_end || options_.task.address.empty() ? LogLevel::kDebug : level,
       .task = options_.task.name,
       .event = normal_end ? "step_ended" : "step_failed",
       .text = StrCat("step ", id, " of session ", options_.session,
                      normal_end ? " ended early: " : " failed: ", status.message()),
       .fields = {{"session", options_.session},
                  {"step", id},
                  {"code", absl::StatusCodeToString(status.code())},
                  {"client", client}},
       .limited = true});
}

StatusOr<SessionSteps::LocalStep*> SessionSteps::BeginLocal(const PreparedStep& prepared) {
  MutexLock lock(mu_);
  if (closed_) [[unlikely]]
    return Closed();
  if (idle_local_.empty()) [[unlikely]] {
    local_.push_back(std::make_unique<LocalStep>());
    idle_local_.push_back(local_.back().get());
  }
  LocalStep* const step = idle_local_.back();
  idle_local_.pop_back();
  step->running = &prepared;
  return step;
}

void SessionSteps::EndLocal(LocalStep* step, int64_t id, const Status& status) {
  {
    MutexLock lock(mu_);
    step->running = nullptr;
    if (closed_) [[unlikely]] {
      // The step stays registered, because EndAll may be about to cancel it.
      none_running_.NotifyAll();
    } else {
      if (step->cancellation.cancelled()) [[unlikely]]
        step->cancellation.Reset();
      idle_local_.push_back(step);
    }
  }
  if (status.ok()) [[likely]]
    return;
  if (options_.counters != nullptr) options_.counters->Failed(status);
  LogFailed(id, status);
}

Status SessionSteps::CheckOpen() const {
  MutexLock lock(mu_);
  return closed_ ? Closed() : OkStatus();
}

bool SessionSteps::Close() {
  MutexLock lock(mu_);
  return !std::exchange(closed_, true);
}

Status SessionSteps::EndAll(const Status& why, int64_t timeout_ms) {
  std::vector<std::pair<LocalStep*, Status>> local;
  {
    MutexLock lock(mu_);
    for (const auto& step : local_) {
      if (step->running == nullptr) continue;
      local.emplace_back(step.get(), WithStepNames(why, *step->running));
    }
  }
  for (const auto& step : List()) step->Abort(WithStepNames(why, step->prepared()));
  for (const auto& [step, ends] : local) step->cancellation.Cancel(ends);
  MutexLock lock(mu_);
  const int64_t latest_ns = options_.services.env->NowNanos() + TimeoutNanos(timeout_ms);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !AnyRunning(); };
  if (none_running_.WaitUntil(mu_, latest_ns, none)) return OkStatus();
  return DeadlineExceeded("session ", options_.session,
                          " was closed, but did not end in time: ", RunningText());
}

void SessionSteps::TaskLost(const TaskId& task, const Status& why) {
  for (const auto& step : List()) step->TaskLost(task, why);
}

std::vector<std::shared_ptr<MasterStep>> SessionSteps::List() const {
  std::vector<std::shared_ptr<MasterStep>> steps;
  MutexLock lock(mu_);
  for (const auto& [id, step] : steps_) steps.push_back(step);
  return steps;
}

std::vector<std::shared_ptr<const MasterStep>> SessionSteps::running() const {
  const std::vector<std::shared_ptr<MasterStep>> steps = List();
  return {steps.begin(), steps.end()};
}

bool SessionSteps::busy() const {
  MutexLock lock(mu_);
  return steps_.size() > partial_;
}

bool SessionSteps::AnyRunning() const {
  for (const auto& step : local_) {
    if (step->running != nullptr) return true;
  }
  return !steps_.empty();
}

std::string SessionSteps::RunningText() const {
  std::vector<std::string> running;
  for (const auto& [id, step] : steps_) {
    std::vector<std::string> tasks;
    for (const TaskId& task : step->UnfinishedTasks()) tasks.push_back(task.name);
    running.push_back(
        StrCat(NamesText(step->prepared().names()), " runs in ", absl::StrJoin(tasks, " and ")));
  }
  for (const auto& step : local_) {
    if (step->running == nullptr) continue;
    running.push_back(StrCat(NamesText(step->running->names()), " runs in this process"));
  }
  return absl::StrJoin(running, "; ");
}

}  // namespace penstock

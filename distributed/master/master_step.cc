// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master_step.h"

#include <algorithm>
#include <utility>

#include "core/base/error_origin.h"
#include "core/base/fault_point.h"
#include "distributed/master/health.h"

namespace penstock {
namespace {

const FaultPoint kNoTask(FaultPoint::kBug, "step/error-without-task",
                         "the error of a step does not say where it failed");
const FaultPoint kSwallowed(FaultPoint::kBug, "step/error-swallowed",
                            "a step counts as done although a task was lost");
const FaultPoint kNotTold(FaultPoint::kBug, "step/parts-not-aborted",
                          "the other tasks are not told that a step has failed");

constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kAbortTimeoutMs = 5'000;
constexpr int64_t kDefaultTimeoutMs = 24 * 3600 * 1000;

}  // namespace

MasterStep::MasterStep(std::shared_ptr<const PreparedStep> prepared, const Args& args,
                       const Services& services)
    : prepared_(std::move(prepared)),
      args_(args),
      services_(services),
      begun_ns_(services.env->NowNanos()),
      ended_(prepared_->parts.size(), false),
      left_(prepared_->parts.size()) {}

void MasterStep::Start(Done done) {
  {
    MutexLock lock(mu_);
    done_.emplace(std::move(done));
  }
  const auto self = shared_from_this();
  if (args_.cancellation != nullptr) {
    // Aborts on a thread of the pool: the end of the step deregisters this callback, which the
    // thread that runs the callback must not do.
    const auto abort = [weak = weak_from_this(), threads = services_.threads](const Status& why) {
      threads->Schedule([weak, why] {
        if (const auto step = weak.lock()) step->Abort(why);
      });
    };
    cancellation_registered_ = args_.cancellation->Register(abort, &cancellation_token_);
    if (!cancellation_registered_) {
      // Keeps an earlier error: the session may be aborting the step at this moment, too.
      MutexLock lock(mu_);
      if (first_error_.ok()) first_error_ = args_.cancellation->status();
    }
  }
  if (args_.deadline_ns != 0) {
    ArmTimer(args_.deadline_ns + kDeadlineSlackMs * kNanosPerMilli, &MasterStep::DeadlinePassed);
  }
  for (size_t part = 0; part < prepared_->parts.size(); ++part) StartPart(part);
}

void MasterStep::StartPart(size_t index) {
  const PreparedStep::Part& part = prepared_->parts[index];
  Status failed;
  {
    MutexLock lock(mu_);
    failed = first_error_;
  }
  if (!failed.ok()) return PartEnded(index, failed);
  int64_t timeout_ms = kDefaultTimeoutMs;
  if (args_.deadline_ns != 0) {
    const int64_t left_ns = args_.deadline_ns - services_.env->NowNanos();
    timeout_ms = std::max<int64_t>(1, left_ns / kNanosPerMilli + kDeadlineSlackMs + kGraceMs);
  }
  const RunGraphArgs run{
      .session = prepared_->session,
      .graph = part.graph,
      .step_id = args_.id,
      .deadline_ns = args_.deadline_ns,
      .feeds = args_.feeds.data(),
      .num_feeds = static_cast<int>(args_.feeds.size()),
      .fetches = args_.fetches.data(),
      .num_fetches = static_cast<int>(args_.fetches.size()),
      .stats = args_.stats,
      .step = part.task->client->in_process() != nullptr ? args_.own_step : nullptr,
      .on_this_thread = args_.on_this_thread,
      // How long a part takes is known from earlier steps, and other feeds may be much larger.
      .may_start_here = args_.feeds.empty()};
  part.task->client->RunGraph(
      run, {.incarnation = part.task->id.incarnation, .timeout_ms = timeout_ms},
      Done([self = shared_from_this(), index](Status status) { self->PartEnded(index, status); }));
}

std::vector<TaskId> MasterStep::UnfinishedTasks() const {
  std::vector<TaskId> tasks;
  MutexLock lock(mu_);
  for (size_t i = 0; i < ended_.size(); ++i) {
    if (!ended_[i]) tasks.push_back(prepared_->parts[i].task->id);
  }
  return tasks;
}

void MasterStep::PartEnded(size_t part, const Status& ended) {
  const bool swallowed = absl::IsUnavailable(ended) && kSwallowed.Fires();
  const bool lost =
      absl::IsUnavailable(ended) && prepared_->parts[part].task->client->in_process() == nullptr;
  const Status status = swallowed ? OkStatus() : lost ? WithStep(ended) : ended;
  Status cause;
  bool last = false;
  {
    MutexLock lock(mu_);
    ended_[part] = true;
    if (!status.ok() && first_error_.ok()) {
      first_error_ = status;
      if (kNoTask.Fires()) {
        first_error_ = Status(status.code(), "a step failed");
      } else if (several_tasks()) {
        const std::string& task = prepared_->parts[part].task->id.name;
        first_error_ =
            WithTask(WithMessage(status, StrCat("From ", task, ":\n", status.message())), task);
      }
      cause = first_error_;
    }
    last = --left_ == 0;
  }
  if (last) return End();
  if (!cause.ok()) AbortParts(cause);
}

// Returns `task_lost`, and adds the name of this step and what the step waited for in the master's
// own task. If the step has failed in that task, returns the step's error instead.
Status MasterStep::WithStep(const Status& task_lost) const {
  Worker* const own = prepared_->tasks->list[0].client->in_process();
  if (own == nullptr) return task_lost;  // nothing in this task waited
  return own->steps().Explain(args_.id, task_lost);
}

void MasterStep::Abort(const Status& why) {
  {
    MutexLock lock(mu_);
    if (!first_error_.ok() || left_ == 0) return;
    first_error_ = why;
  }
  AbortParts(why);
}

void MasterStep::TaskLost(const TaskId& task, const Status& why) {
  const auto& parts = prepared_->parts;
  const auto part =
      std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.task->id == task; });
  if (part == parts.end()) return;
  Abort(WithStep(WithTask(why, task.name)));
  part->task->client->AbandonStep(args_.id);
}

// Aborts the parts that still run.
void MasterStep::AbortParts(const Status& why) {
  if (kNotTold.Fires()) return;
  ArmTimer(services_.env->NowNanos() + kGraceMs * kNanosPerMilli, &MasterStep::AbandonParts);
  std::vector<const PreparedStep::Part*> running;
  {
    MutexLock lock(mu_);
    for (size_t i = 0; i < ended_.size(); ++i) {
      if (!ended_[i]) running.push_back(&prepared_->parts[i]);
    }
  }
  for (const PreparedStep::Part* part : running) {
    part->task->client->AbortStep(
        args_.id, why, {.incarnation = part->task->id.incarnation, .timeout_ms = kAbortTimeoutMs},
        Done([prepared = prepared_, part, id = args_.id, why](const Status& acknowledged) {
          const auto& health = part->task->health;
          if (acknowledged.ok() || health == nullptr) return;
          health->NoteLostAbort(id, why);
        }));
  }
}

void MasterStep::AbandonParts() {
  for (const PreparedStep::Part& part : prepared_->parts) {
    part.task->client->AbandonStep(args_.id);
  }
}

// Arms the timer to call `then`, on a thread of the pool: the end of the step disarms the timers,
// which waits for the timer's thread, so that thread must not end the step.
void MasterStep::ArmTimer(int64_t at_ns, void (MasterStep::*then)()) {
  MutexLock lock(mu_);
  if (left_ == 0) return;
  timers_.push_back(
      services_.timer->Arm(at_ns, [weak = weak_from_this(), threads = services_.threads, then] {
        threads->Schedule([weak, then] {
          if (const auto step = weak.lock()) ((*step).*then)();
        });
      }));
}

void MasterStep::DeadlinePassed() {
  std::string waiting;
  {
    MutexLock lock(mu_);
    for (size_t i = 0; i < ended_.size(); ++i) {
      if (ended_[i]) continue;
      StrAppend(&waiting, waiting.empty() ? "" : ", ", prepared_->parts[i].task->id.ToString());
    }
  }
  Abort(DeadlineExceeded("step ", args_.id, " did not end before its deadline; ", waiting,
                         " had not finished"));
}

void MasterStep::End() {
  std::vector<DeadlineTimer::Token> timers;
  std::optional<Done> done;
  Status status;
  {
    MutexLock lock(mu_);
    timers.swap(timers_);
    done.emplace(*std::move(done_));
    done_.reset();
    status = first_error_;
  }
  for (const DeadlineTimer::Token& timer : timers) services_.timer->Disarm(timer);
  if (cancellation_registered_) args_.cancellation->Deregister(cancellation_token_);
  std::move (*done)(std::move(status));
}

}  // namespace penstock

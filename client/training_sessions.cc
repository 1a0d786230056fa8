// SPDX-License-Identifier: Apache-2.0
//
// The sessions of TrainingLoop: waits for tasks, and gives the variables of a new session their
// values.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/seconds.h"
#include "client/task_loss.h"
#include "client/training.h"

namespace penstock::client {
namespace {

constexpr int kNamesShown = 5;
constexpr double kSayAgainSeconds = 30;

// Returns a text such as "w, b and 3 more".
std::string Some(std::vector<std::string> names) {
  const size_t count = names.size();
  if (count <= kNamesShown) return absl::StrJoin(names, ", ");
  names.resize(kNamesShown);
  return StrCat(absl::StrJoin(names, ", "), " and ", count - kNamesShown, " more");
}

}  // namespace

Status TrainingLoop::Connect() {
  const int64_t start = options_.env->NowNanos();
  while (true) {
    const Status status = TryConnect();
    // A task that does not answer in time is treated like one that has not started.
    if (!IsTaskLoss(status) && !absl::IsDeadlineExceeded(status)) return status;
    const double waited = (options_.env->NowNanos() - start) * 1e-9;
    if (waited > options_.wait_seconds) {
      return DeadlineExceeded("gave up after waiting ", absl::StrFormat("%.0f", waited),
                              " s: ", status.message());
    }
    SayWaiting(StrCat("waiting: ", status.message()));
    Sleep(options_.retry_seconds);
    if (stopping()) return Cancelled("told to stop while waiting: ", status.message());
  }
}

Status TrainingLoop::TryConnect() {
  RETURN_IF_ERROR(NewSession());
  if (!program_.locals().empty()) RETURN_IF_ERROR(session_->Execute(initialize_locals_));
  if (options_.agree.valid()) {
    RETURN_IF_ERROR(AgreeOnVariables());
  } else {
    RETURN_IF_ERROR(options_.is_chief ? InitializeOrRestore() : WaitForVariables());
  }
  ASSIGN_OR_RETURN(const Tensor step, session_->Fetch(step_read_));
  global_step_ = step.scalar<int64_t>();
  prepared_ = true;
  return StepWith({}).status();
}

Status TrainingLoop::NewSession() {
  EndSession();
  steps_.clear();
  session_.reset();
  if (options_.new_session) {
    ASSIGN_OR_RETURN(auto session, options_.new_session());
    session_ = std::make_unique<Session>(program_, std::move(session));
  } else {
    SessionOptions session = options_.session;
    session.operation_timeout_ms = Millis(options_.connect_seconds);
    ASSIGN_OR_RETURN(session_, Session::New(program_, options_.target, session));
  }
  session_->set_run_timeout_ms(Millis(options_.step_seconds));
  return OkStatus();
}

void TrainingLoop::EndSession() {
  saving_.reset();
  // If steps are still under way here, there was an error, and their results are not needed.
  if (!under_way_.empty()) session_->Close().IgnoreError();
  under_way_.clear();
  blocked_ = OkStatus();
  if (session_ == nullptr) return;
  for (TrainingHook* hook : hooks_) hook->SessionEnds();
}

StatusOr<std::vector<std::string>> TrainingLoop::Uninitialized() {
  ASSIGN_OR_RETURN(const Tensor answers, session_->Fetch(are_initialized_));
  std::vector<std::string> names;
  for (size_t i = 0; i < shared_.size(); ++i) {
    if (!answers.flat<bool>()[i]) names.push_back(shared_[i].name());
  }
  return names;
}

Status TrainingLoop::WaitForVariables() {
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, Uninitialized());
  if (missing.empty()) return OkStatus();
  return Unavailable(options_.chief, " (the chief) has not initialised ", Some(missing), " yet");
}

Status TrainingLoop::InitializeOrRestore() {
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, Uninitialized());
  if (prepared_ && missing.empty()) {
    Say(LogLevel::kInfo, "resumed", "no variable was lost: going on");
    return OkStatus();
  }
  bool restored = false;
  if (saver_) RETURN_IF_ERROR(RestoreNewest(&restored));
  if (restored) return OkStatus();
  if (prepared_) {
    return FailedPrecondition("the values of ", Some(missing),
                              " were lost with their task, and there is no checkpoint to go on "
                              "from; give the training a checkpoint directory");
  }
  RETURN_IF_ERROR(session_->Execute(initialize_));
  // Save now, so that the training can recover if a task is lost before the first save is due.
  return saver_ ? FilterSaveError(Save()) : OkStatus();
}

// Sets the variables of all replicas to the chief's values, if every worker holds all variables
// itself (TrainingOptions::agree).
Status TrainingLoop::AgreeOnVariables() {
  if (!options_.is_chief) {
    RETURN_IF_ERROR(session_->Execute(initialize_));
  } else if (prepared_ && saver_) {
    // Go back to a checkpoint, because the other replicas may have lost their last steps, or taken
    // one more.
    bool restored = false;
    RETURN_IF_ERROR(RestoreNewest(&restored));
    if (!restored) RETURN_IF_ERROR(InitializeOrRestore());
  } else {
    RETURN_IF_ERROR(InitializeOrRestore());
  }
  RunOptions run{.timeout_ms = Millis(options_.step_seconds)};
  if (signal_ != nullptr) run.cancellation = &signal_->cancellation();
  ASSIGN_OR_RETURN(const Callable agree, session_->MakeCallable({}, {}, {options_.agree}));
  return agree({}, run).status();
}

Status TrainingLoop::RestoreNewest(bool* restored) {
  ASSIGN_OR_RETURN(const NewestGood found,
                   saver_->RestoreNewestGood(*session_, options_.checkpoint_dir));
  for (const auto& skipped : found.skipped) {
    Say(LogLevel::kWarning, "checkpoint_skipped",
        StrCat("passed over checkpoint ", skipped.prefix, ": ", skipped.why.message()));
  }
  if (found.prefix.empty()) return OkStatus();
  *restored = true;
  Say(LogLevel::kInfo, "restored", StrCat("restored ", found.prefix));
  saved_ns_ = options_.env->NowNanos();
  ASSIGN_OR_RETURN(const Tensor step, session_->Fetch(step_read_));
  saved_step_ = last_save_step_ = step.scalar<int64_t>();
  return OkStatus();
}

// Says `line`, but the same line again only after kSayAgainSeconds.
void TrainingLoop::SayWaiting(const std::string& line) {
  const int64_t now = options_.env->NowNanos();
  if (line == said_ && (now - said_ns_) * 1e-9 < kSayAgainSeconds) return;
  said_ = line;
  said_ns_ = now;
  Say(LogLevel::kWarning, "waiting", line);
}

// Sleeps in short intervals, so that a request to stop is noticed.
void TrainingLoop::Sleep(double seconds) {
  const int64_t end = options_.env->NowNanos() + Nanos(seconds);
  while (!stopping()) {
    const int64_t left = end - options_.env->NowNanos();
    if (left <= 0) return;
    options_.env->SleepForNanos(std::min<int64_t>(left, 50'000'000));
  }
}

}  // namespace penstock::client

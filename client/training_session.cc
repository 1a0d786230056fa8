// SPDX-License-Identifier: Apache-2.0
#include "client/training_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/seconds.h"
#include "client/task_loss.h"

namespace penstock::client {
namespace {

constexpr int kNamesShown = 5;
constexpr double kSayAgainSeconds = 30;

// Returns whether another attempt to connect may succeed. A task that does not answer in time is
// treated like one that has not started.
bool MayConnectLater(const Status& status) {
  return IsTaskLoss(status) || absl::IsDeadlineExceeded(status);
}

// Returns a text such as "w, b and 3 more".
std::string SummarizeNames(std::vector<std::string> names) {
  const size_t count = names.size();
  if (count <= kNamesShown) return absl::StrJoin(names, ", ");
  names.resize(kNamesShown);
  return StrCat(absl::StrJoin(names, ", "), " and ", count - kNamesShown, " more");
}

}  // namespace

TrainingSession::Nodes TrainingSession::AddNodes(const TrainingContext& context) {
  Program& program = context.program;
  Nodes nodes;
  const ExactlyOnce* const once = context.step.once;
  nodes.initialize =
      once != nullptr ? once->Initialize(context.shared) : program.Initialize(context.shared);
  nodes.initialize_locals = program.Initialize(program.locals(), "init_locals");
  nodes.are_initialized = program.AreInitialized(context.shared);
  return nodes;
}

Status TrainingSession::Connect() {
  others_have_ended_ = false;
  const int64_t start = context_.options.env->NowNanos();
  while (true) {
    Status status = TryConnect();
    if (MayConnectLater(status) && MayEndAlone()) {
      const Status alone = ConnectAlone();
      others_have_ended_ = alone.ok();
      status = alone.ok() ? Unavailable("the other workers have ended: ", status.message()) : alone;
    }
    if (others_have_ended_ || !MayConnectLater(status)) return status;
    const double waited = (context_.options.env->NowNanos() - start) * 1e-9;
    if (waited > context_.options.wait_seconds) {
      return DeadlineExceeded("gave up after waiting ", absl::StrFormat("%.0f", waited),
                              " s: ", status.message());
    }
    SayWaiting(StrCat("waiting: ", status.message()));
    Sleep(context_.options.retry_seconds);
    if (context_.stopping()) return Cancelled("told to stop while waiting: ", status.message());
  }
}

Status TrainingSession::TryConnect() {
  RETURN_IF_ERROR(context_.options.group != nullptr
                      ? NewSessionOfGroup()
                      : NewSession(context_.options.session.device_filters));
  if (!context_.program.locals().empty()) {
    RETURN_IF_ERROR(session_->Execute(nodes_.initialize_locals));
  }
  if (context_.options.group != nullptr) {
    RETURN_IF_ERROR(JoinGroup());
  } else if (context_.options.agree.valid()) {
    RETURN_IF_ERROR(AgreeOnVariables());
  } else {
    RETURN_IF_ERROR(context_.options.is_chief ? InitializeOrRestore() : WaitForVariables());
  }
  ASSIGN_OR_RETURN(context_.global_step, context_.FetchStep(*session_));
  prepared_ = true;
  return steps_.Prepare(*session_);
}

Status TrainingSession::NewSession(const std::vector<std::string>& device_filters) {
  End();
  steps_.Forget();
  session_.reset();
  if (context_.options.new_session) {
    ASSIGN_OR_RETURN(auto session, context_.options.new_session());
    session_ = std::make_unique<Session>(context_.program, std::move(session));
  } else {
    SessionOptions session = context_.options.session;
    session.device_filters = device_filters;
    session.operation_timeout_ms = Millis(context_.options.connect_seconds);
    if (context_.options.group != nullptr) {
      ASSIGN_OR_RETURN(auto made, context_.options.group->NewSession(session));
      session_ = std::make_unique<Session>(context_.program, std::move(made));
    } else {
      ASSIGN_OR_RETURN(session_, Session::New(context_.program, context_.options.target, session));
    }
  }
  session_->set_run_timeout_ms(Millis(context_.options.step_seconds));
  return OkStatus();
}

// Makes a session with the tasks that the group chooses.
Status TrainingSession::NewSessionOfGroup() {
  TrainingGroup& group = *context_.options.group;
  if (session_ != nullptr) group.Leave(*session_);
  ASSIGN_OR_RETURN(const std::vector<std::string> members, group.FindMembers());
  return NewSession(members);
}

Status TrainingSession::ConnectAlone() {
  TrainingGroup& group = *context_.options.group;
  if (session_ != nullptr) group.Leave(*session_);
  RETURN_IF_ERROR(NewSession({group.task()}));
  if (!context_.program.locals().empty()) {
    RETURN_IF_ERROR(session_->Execute(nodes_.initialize_locals));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, Uninitialized());
  if (missing.empty()) return OkStatus();
  bool restored = false;
  RETURN_IF_ERROR(saves_.RestoreNewest(*session_, &restored));
  if (restored) return OkStatus();
  return FailedPrecondition("the values of ", SummarizeNames(missing),
                            " were lost with their task, and the last checkpoint is not there");
}

bool TrainingSession::AskWhetherOthersHaveEnded() {
  context_.options.group->FindMembers().status().IgnoreError();
  return MayEndAlone();
}

// Returns whether the last FindMembers has shown that the other members have ended.
bool TrainingSession::MayEndAlone() const {
  const TrainingGroup* const group = context_.options.group;
  return context_.all_steps_taken && group != nullptr && group->too_few_members() &&
         saves_.HasNewest();
}

void TrainingSession::End() {
  if (session_ == nullptr) return;
  for (TrainingHook* hook : context_.hooks) hook->SessionEnds();
}

StatusOr<std::vector<std::string>> TrainingSession::Uninitialized() {
  ASSIGN_OR_RETURN(const Tensor answers, session_->Fetch(nodes_.are_initialized));
  std::vector<std::string> names;
  for (size_t i = 0; i < context_.shared.size(); ++i) {
    if (!answers.flat<bool>()[i]) names.push_back(context_.shared[i].name());
  }
  return names;
}

Status TrainingSession::WaitForVariables() {
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, Uninitialized());
  if (missing.empty()) return OkStatus();
  return Unavailable(context_.options.chief, " (the chief) has not initialised ",
                     SummarizeNames(missing), " yet");
}

Status TrainingSession::InitializeOrRestore() {
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, Uninitialized());
  const bool deterministic = context_.options.deterministic;
  if (prepared_ && missing.empty() && !deterministic) {
    context_.Say(LogLevel::kInfo, "resumed", "no variable was lost: going on");
    return OkStatus();
  }
  bool restored = false;
  RETURN_IF_ERROR(saves_.RestoreNewest(*session_, &restored));
  if (restored) return OkStatus();
  if (prepared_ && deterministic) {
    context_.Say(LogLevel::kWarning, "resumed", "there is no checkpoint yet: beginning again");
  } else if (prepared_) {
    return FailedPrecondition("the values of ", SummarizeNames(missing),
                              " were lost with their task, and there is no checkpoint to go on "
                              "from; give the training a checkpoint directory");
  }
  RETURN_IF_ERROR(session_->Execute(nodes_.initialize));
  return saves_.SaveFirst(*session_);
}

// Sets the variables of all replicas to the chief's values, if every worker holds all variables
// itself (TrainingOptions::agree).
Status TrainingSession::AgreeOnVariables() {
  if (!context_.options.is_chief) {
    RETURN_IF_ERROR(session_->Execute(nodes_.initialize));
  } else if (prepared_ && saves_.saver() != nullptr) {
    // Goes back to a checkpoint, because the other replicas may have lost their last steps, or may
    // be one step ahead.
    bool restored = false;
    RETURN_IF_ERROR(saves_.RestoreNewest(*session_, &restored));
    if (!restored) RETURN_IF_ERROR(InitializeOrRestore());
  } else {
    RETURN_IF_ERROR(InitializeOrRestore());
  }
  ASSIGN_OR_RETURN(const Callable agree, session_->MakeCallable({}, {}, {context_.options.agree}));
  return agree({}, context_.StepOptions()).status();
}

// Joins the group, and gives the variables the values with which the group goes on.
Status TrainingSession::JoinGroup() {
  TrainingGroup& group = *context_.options.group;
  const RunOptions run = context_.StepOptions();
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, Uninitialized());
  ASSIGN_OR_RETURN(const TrainingGroup::Plan plan,
                   group.Join(*session_, run, prepared_ && missing.empty()));
  if (plan.receives && !missing.empty()) RETURN_IF_ERROR(session_->Execute(nodes_.initialize));
  if (plan.restore && group.is_chief()) RETURN_IF_ERROR(RestoreForGroup(plan.started));
  RETURN_IF_ERROR(group.ShareValues(*session_, run));
  context_.Say(LogLevel::kInfo, "group", group.Describe());
  return OkStatus();
}

// For a group in which no member has the variables' values: restores the newest checkpoint. If
// there is none and no member has trained before (`started` is false), initialises the variables.
Status TrainingSession::RestoreForGroup(bool started) {
  bool restored = false;
  RETURN_IF_ERROR(saves_.RestoreNewest(*session_, &restored));
  if (restored) return OkStatus();
  if (started) {
    return FailedPrecondition(
        "the variables' values were lost at all workers of the group, and there is no checkpoint ",
        "to go on from; give the training a checkpoint directory that all workers share");
  }
  RETURN_IF_ERROR(session_->Execute(nodes_.initialize));
  return saves_.SaveFirst(*session_);
}

// Prints `line`, unless the same line was printed less than kSayAgainSeconds ago.
void TrainingSession::SayWaiting(const std::string& line) {
  const int64_t now = context_.options.env->NowNanos();
  if (line == last_line_ && (now - last_line_ns_) * 1e-9 < kSayAgainSeconds) return;
  last_line_ = line;
  last_line_ns_ = now;
  context_.Say(LogLevel::kWarning, "waiting", line);
}

// Sleeps in short intervals, so that a request to stop is noticed.
void TrainingSession::Sleep(double seconds) {
  const int64_t end = context_.options.env->NowNanos() + Nanos(seconds);
  while (!context_.stopping()) {
    const int64_t left = end - context_.options.env->NowNanos();
    if (left <= 0) return;
    context_.options.env->SleepForNanos(std::min<int64_t>(left, 50'000'000));
  }
}

}  // namespace penstock::client

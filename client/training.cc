// SPDX-License-Identifier: Apache-2.0
#include "client/training.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/error_origin.h"
#include "core/base/log.h"

namespace penstock::client {
namespace {

constexpr int kNamesShown = 5;
constexpr double kSayAgainSeconds = 30;
// How long a step may run after a signal before it is cancelled.
constexpr double kGraceSeconds = 5;
// How long a cancelled step may take to end before the process exits.
constexpr double kExitSeconds = 5;

// Returns whether a task is lost or has not started, so that another attempt may succeed.
bool IsTaskLoss(const Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

// Longer times are reduced to a year.
constexpr double kSecondsMax = 365 * 24 * 3600;
double Limit(double seconds) { return std::min(kSecondsMax, std::max(0.0, seconds)); }
int64_t Millis(double seconds) { return static_cast<int64_t>(Limit(seconds) * 1e3); }

// Returns a text such as "w, b and 3 more".
std::string Some(std::vector<std::string> names) {
  const size_t count = names.size();
  if (count <= kNamesShown) return absl::StrJoin(names, ", ");
  names.resize(kNamesShown);
  return StrCat(absl::StrJoin(names, ", "), " and ", count - kNamesShown, " more");
}

// While an object of this class exists, hooks do not update variables outside steps.
class HeldUpdates {
 public:
  explicit HeldUpdates(const std::vector<TrainingHook*>& hooks) : hooks_(hooks) {
    for (TrainingHook* hook : hooks_) hook->HoldUpdates();
  }
  ~HeldUpdates() {
    for (TrainingHook* hook : hooks_) hook->ReleaseUpdates();
  }
  HeldUpdates(const HeldUpdates&) = delete;
  HeldUpdates& operator=(const HeldUpdates&) = delete;

 private:
  const std::vector<TrainingHook*>& hooks_;
};

StatusOr<double> ScalarValue(const std::string& name, const Tensor& tensor) {
  if (tensor.num_elements() == 1) {
    switch (tensor.dtype()) {
      case DType::kFloat:
        return tensor.scalar<float>();
      case DType::kDouble:
        return tensor.scalar<double>();
      case DType::kInt32:
        return tensor.scalar<int32_t>();
      case DType::kInt64:
        return static_cast<double>(tensor.scalar<int64_t>());
      default:
        break;
    }
  }
  return InvalidArgument("measure '", name, "' must be one number, is ", Name(tensor.dtype()),
                         tensor.shape().ToString());
}

}  // namespace

TrainingLoop::TrainingLoop(Program& program, TrainingStep step, TrainingOptions options)
    : program_(program),
      step_(std::move(step)),
      options_(std::move(options)),
      shared_(((void)program.GlobalStep(), program.globals())) {
  const auto names = program.NameScope("training");
  step_read_ = program.GlobalStep().Read();
  initialize_ = program.Initialize(shared_);
  initialize_locals_ = program.Initialize(program.locals(), "init_locals");
  are_initialized_ = program.AreInitialized(shared_);
  if (!options_.checkpoint_dir.empty()) {
    saver_.emplace(
        program, shared_,
        SaverOptions{.keep = options_.keep_checkpoints,
                     .mutexes = step_.once == nullptr ? Outputs() : step_.once->mutexes(),
                     .keep_every_hours = options_.keep_checkpoint_every_hours,
                     .incremental = options_.incremental_saves,
                     .background = options_.is_chief && options_.save_in_background,
                     .bytes_per_second = options_.save_bytes_per_second,
                     .finite_only = options_.stop_on_nan,
                     .env = options_.env});
  }
  const auto after = program.ControlDependencies({step_.train});
  step_after_ = program.GlobalStep().Read();
  step_progress_.emplace(program, step_.train, options_.unchanged_steps_max);
}

TrainingLoop::~TrainingLoop() = default;

bool TrainingLoop::stopping() const {
  return stop_.load() || (signal_ != nullptr && signal_->requested());
}

// Makes the process exit if its steps do not end within kExitSeconds after they were cancelled.
void TrainingLoop::ExitAfterGrace() {
  Cancellation::Token token;
  const bool registered = signal_->cancellation().Register(
      [this](const Status&) {
        exit_deadline_.emplace(kExitSeconds, nullptr, *options_.env, *options_.scheduler);
      },
      &token);
  if (registered) exit_token_ = token;
}

// Disarms ExitAfterGrace: no step runs any more, and saving has no such limit.
void TrainingLoop::EndForcedExit() {
  if (exit_token_.has_value()) signal_->cancellation().Deregister(*exit_token_);
  exit_token_.reset();
  exit_deadline_.reset();
}

void TrainingLoop::Say(LogLevel level, const char* event, const std::string& line) {
  if (options_.say) return options_.say(line);
  Log({.level = level, .event = event, .text = line, .fields = {{"step", global_step_}}});
}

// Repeats the same line only at intervals.
void TrainingLoop::SayWaiting(const std::string& line) {
  const int64_t now = options_.env->NowNanos();
  if (line == said_ && (now - said_ns_) * 1e-9 < kSayAgainSeconds) return;
  said_ = line;
  said_ns_ = now;
  Say(LogLevel::kWarning, "waiting", line);
}

// Sleeps in short intervals, so that a request to stop is noticed.
void TrainingLoop::Sleep(double seconds) {
  const int64_t end = options_.env->NowNanos() + static_cast<int64_t>(Limit(seconds) * 1e9);
  while (!stopping()) {
    const int64_t left = end - options_.env->NowNanos();
    if (left <= 0) return;
    options_.env->SleepForNanos(std::min<int64_t>(left, 50'000'000));
  }
}

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

void TrainingLoop::EndSession() {
  saving_.reset();
  // If steps are still under way here, there was an error, and their results are not needed.
  if (!under_way_.empty()) session_->Close().IgnoreError();
  under_way_.clear();
  blocked_ = OkStatus();
  if (session_ == nullptr) return;
  for (TrainingHook* hook : hooks_) hook->SessionEnds();
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

Status TrainingLoop::Run() {
  if (step_.once != nullptr && options_.concurrent_steps > 1) {
    return InvalidArgument("concurrent_steps=", options_.concurrent_steps,
                           ": with ExactlyOnce a worker's steps come one after the other: say 1");
  }
  if (options_.agree.valid() && options_.concurrent_steps > 1) {
    return InvalidArgument(
        "concurrent_steps=", options_.concurrent_steps,
        ": replicas that average their gradients take one step at a time: ", "say 1");
  }
  if (options_.max_failed_saves_in_a_row < 0) {
    return InvalidArgument("max_failed_saves_in_a_row=", options_.max_failed_saves_in_a_row,
                           ": expected 0, for no limit, or more");
  }
  const bool has_loss =
      std::any_of(step_.measures.begin(), step_.measures.end(),
                  [this](const auto& measure) { return measure.first == step_.loss; });
  if (!has_loss && step_.loss != TrainingStep().loss) {
    return InvalidArgument("TrainingStep::loss: there is no measure '", step_.loss, "'");
  }
  if (options_.stop_on_signals) {
    signal_ = std::make_unique<StopSignal>(kGraceSeconds, *options_.env, *options_.scheduler);
    ExitAfterGrace();
  }
  Status status = Train();
  // Completes a save that is running, so that the state before an error is kept.
  if (!stopping()) EndOrGiveUpSave();
  EndSession();
  EndForcedExit();
  signal_.reset();
  return status;
}

Status TrainingLoop::Train() {
  Status status = TrainToEnd(Begin());
  // If a task is lost before the final save, steps may be lost with it: train again.
  while (IsTaskLoss(status) && ended_ && !stopping()) {
    if (signal_ != nullptr) ExitAfterGrace();
    status = TrainToEnd(status);
  }
  return status;
}

// Continues after `status`, the result of making a session or of the last step.
Status TrainingLoop::TrainToEnd(Status status) {
  ended_ = false;
  while (true) {
    if (IsTaskLoss(status)) {
      if (++failures_in_a_row_ > options_.max_failures_in_a_row) {
        return Annotate(status, StrCat("gave up after ", failures_in_a_row_,
                                       " failures without a step between them"));
      }
      status = Recover(status);
      continue;
    }
    const bool finished = options_.max_steps > 0 && global_step_ >= options_.max_steps;
    if (!status.ok() || finished || stopping()) break;
    status = RunStep();
    if (!status.ok()) continue;
    failures_in_a_row_ = 0;
    status = SaveIfDue();
  }
  if (options_.agree.valid() && absl::IsOutOfRange(status)) {
    Say(LogLevel::kInfo, "training_ends",
        StrCat("ends after step ", global_step_, ": ", status.message()));
  }
  // Returns whether this is a normal end: OK, the end of the data, or a wait or step that a signal
  // has cancelled.
  const auto in_order = [this](const Status& s) {
    return s.ok() || absl::IsOutOfRange(s) || (stopping() && absl::IsCancelled(s));
  };
  while (in_order(status) && !under_way_.empty()) {
    const Status ended = FinishStep();
    if (!in_order(ended)) status = ended;
  }
  if (!in_order(status)) return status;
  EndForcedExit();
  ended_ = true;
  return steps_.empty() ? OkStatus() : End();
}

// Makes a session in which steps can run.
Status TrainingLoop::Begin() {
  RETURN_IF_ERROR(Connect());
  for (TrainingHook* hook : hooks_) RETURN_IF_ERROR(hook->SessionReady(*session_, global_step_));
  return OkStatus();
}

Status TrainingLoop::RunStep() {
  while (blocked_.ok() && MayStart()) blocked_ = StartStep();
  // An error that prevents the next step from starting is returned after the steps before it have
  // ended.
  return under_way_.empty() ? std::exchange(blocked_, OkStatus()) : FinishStep();
}

// Returns whether another step may start: fewer than concurrent_steps are under way, and max_steps
// would not be exceeded by the expected number of steps.
bool TrainingLoop::MayStart() const {
  const auto started = static_cast<int64_t>(under_way_.size());
  return started == 0 || (started < options_.concurrent_steps && !stopping() &&
                          (options_.max_steps == 0 || global_step_ + started < options_.max_steps));
}

Status TrainingLoop::StartStep() {
  // While other steps run, the global step is not known: each step gets a different number.
  const int64_t step = under_way_.empty() ? global_step_ : std::max(global_step_, next_step_);
  next_step_ = step + 1;
  for (TrainingHook* hook : hooks_) RETURN_IF_ERROR(hook->BeforeStep(step));
  std::vector<HookFetches> wanted;
  ASSIGN_OR_RETURN(const Callable* const callable, StepWith(ExtraFetches(step, &wanted)));
  std::vector<Tensor> batch;
  if (step_.next_batch) {
    ASSIGN_OR_RETURN(batch, step_.next_batch(step));
  }
  RunOptions run{.timeout_ms = Millis(options_.step_seconds)};
  if (signal_ != nullptr) run.cancellation = &signal_->cancellation();
  // Without concurrent steps, the step runs on this thread when its result is awaited.
  const bool traced = options_.trace != nullptr && options_.trace->Take(step);
  const auto run_step = [this, callable, batch, run, step, traced] {
    return traced ? RunTraced(*callable, step, batch, run) : (*callable)(batch, run);
  };
  StartedStep started = options_.concurrent_steps > 1 ? StartedStep(run_step, *options_.scheduler)
                                                      : StartedStep(run_step);
  under_way_.push_back({std::move(batch), std::move(wanted), std::move(started)});
  return OkStatus();
}

StatusOr<std::vector<Tensor>> TrainingLoop::RunTraced(const Callable& callable, int64_t step,
                                                      const std::vector<Tensor>& batch,
                                                      RunOptions run) const {
  run.trace = true;
  RunMetadata metadata;
  const auto now_ns = [this] { return options_.env->WallMicros() * 1000; };
  const int64_t start_ns = now_ns();
  auto outputs = callable(batch, run, &metadata);
  if (outputs.ok()) {
    options_.trace->Add({step, start_ns, now_ns(), std::move(metadata.step_stats)});
  }
  return outputs;
}

Status TrainingLoop::FinishStep() {
  const auto ran = under_way_.front().outputs.get();
  const std::vector<Tensor> batch = std::move(under_way_.front().batch);
  const std::vector<HookFetches> wanted = std::move(under_way_.front().wanted);
  under_way_.pop_front();
  if (!ran.ok()) {
    Status why = ran.status();
    for (TrainingHook* hook : hooks_) why = hook->StepFailed(why);
    return why;
  }
  const std::vector<Tensor>& outputs = *ran;
  global_step_ = std::max(global_step_, outputs[0].scalar<int64_t>());
  std::string line;
  RETURN_IF_ERROR(step_progress_->Add(outputs[0].scalar<int64_t>(), &line));
  if (!line.empty()) Say(LogLevel::kWarning, "no_new_step", line);
  StepResult result{.global_step = global_step_};
  for (size_t i = 0; i < step_.measures.size(); ++i) {
    const std::string& name = step_.measures[i].first;
    ASSIGN_OR_RETURN(result.measures[name], ScalarValue(name, outputs[i + 1]));
    if (name == step_.loss) RETURN_IF_ERROR(CheckLoss(result.measures[name], batch));
  }
  PassExtraFetches(wanted, outputs);
  bool stop = false;
  for (TrainingHook* hook : hooks_) RETURN_IF_ERROR(hook->AfterStep(result, &stop));
  if (stop) RequestStop();
  return OkStatus();
}

// Returns words that name the checkpoint from which training can go on.
std::string TrainingLoop::NotSavedSince() const {
  if (!saver_ || !options_.is_chief || saved_step_ < 0) return "";
  return StrCat("; ", LastCheckpoint());
}

Status TrainingLoop::Recover(const Status& failure) {
  Say(LogLevel::kWarning, "step_failed",
      StrCat("step after ", global_step_, " failed: ", failure.message(),
             "; making a new session"));
  RETURN_IF_ERROR(Begin());
  Say(LogLevel::kInfo, "resumed", StrCat("going on at step ", global_step_));
  return OkStatus();
}

bool TrainingLoop::SaveIsDue() const {
  const double seconds = (options_.env->NowNanos() - saved_ns_) * 1e-9;
  return (options_.save_every_steps > 0 &&
          global_step_ - last_save_step_ >= options_.save_every_steps) ||
         (options_.save_every_seconds > 0 && seconds >= options_.save_every_seconds);
}

Status TrainingLoop::SaveIfDue() {
  if (!saver_ || !options_.is_chief) return OkStatus();
  if (saving_ != nullptr && saving_->Advance()) RETURN_IF_ERROR(EndBackgroundSave());
  if (saving_ != nullptr || !SaveIsDue()) return OkStatus();
  if (!options_.save_in_background) return FilterSaveError(Save());
  saved_ns_ = options_.env->NowNanos();
  last_save_step_ = global_step_;
  const auto cut = [this](const std::string& name, const RunOptions& run) -> StatusOr<int64_t> {
    const HeldUpdates held(hooks_);
    RETURN_IF_ERROR(saver_->Cut(*session_, name, run));
    return FetchStep();
  };
  saving_ = std::make_unique<BackgroundSave>(*saver_, *session_, CheckpointPrefix(), cut,
                                             *options_.env, *options_.scheduler);
  return OkStatus();
}

// Returns errors that end the training or require a new session; logs others and returns OK.
Status TrainingLoop::FilterSaveError(const Status& saved) {
  if (saved.ok() || IsTaskLoss(saved) || saver_->IsNonFinite(saved)) return saved;
  // A full disk should not end the training, because the next save may succeed.
  const std::string why = StrCat(saved.message(), "; ", LastCheckpoint());
  Say(LogLevel::kError, "not_saved", StrCat("NOT SAVED: ", why));
  saved_ns_ = options_.env->NowNanos();
  const int most = options_.max_failed_saves_in_a_row;
  if (++failed_saves_ < most || most == 0) return OkStatus();
  return FailedPrecondition("gave up after ", failed_saves_,
                            " saves in a row that have failed (max_failed_saves_in_a_row): ", why);
}

std::string TrainingLoop::LastCheckpoint() const {
  if (saved_step_ < 0) return "there is no checkpoint yet";
  return StrCat("the last checkpoint is of step ", saved_step_);
}

StatusOr<int64_t> TrainingLoop::FetchStep() {
  ASSIGN_OR_RETURN(const Tensor step, session_->Fetch(step_read_));
  return step.scalar<int64_t>();
}

std::string TrainingLoop::CheckpointPrefix() const {
  return options_.checkpoint_dir + "/model.ckpt";
}

Status TrainingLoop::Save() {
  const HeldUpdates held(hooks_);
  ASSIGN_OR_RETURN(const int64_t step, FetchStep());
  last_save_step_ = step;
  RETURN_IF_ERROR(Saved(saver_->Save(*session_, CheckpointPrefix(), step), step));
  saved_ns_ = options_.env->NowNanos();
  return OkStatus();
}

// Waits for the running save.
Status TrainingLoop::EndBackgroundSave() {
  StatusOr<std::string> checkpoint = saving_->Wait();
  const int64_t step = saving_->step();
  saving_.reset();
  return FilterSaveError(Saved(std::move(checkpoint), step));
}

// Ends a running save before the training ends with an error: waits if the snapshot was taken, else
// cancels the save, because the current values may be bad.
void TrainingLoop::EndOrGiveUpSave() {
  if (saving_ != nullptr && saving_->cut()) {
    const Status saved = EndBackgroundSave();
    if (!saved.ok()) Say(LogLevel::kError, "not_saved", StrCat("NOT SAVED: ", saved.message()));
  }
  saving_.reset();
}

// Records the result of a save.
Status TrainingLoop::Saved(StatusOr<std::string> checkpoint, int64_t step) {
  const Status& saved = checkpoint.status();
  if (saver_->IsNonFinite(saved)) {
    return WithMessage(saved,
                       StrCat(saved.message(), NotSavedSince(),
                              ". stop_on_nan = false in TrainingOptions saves it all the same"));
  }
  RETURN_IF_ERROR(saved);
  saved_step_ = step;
  last_save_step_ = std::max(last_save_step_, step);
  failed_saves_ = 0;
  if (!options_.say) {
    Log({.event = "checkpoint",
         .text = StrCat("saved ", *checkpoint),
         .fields = {{"step", step}, {"checkpoint", *checkpoint}}});
  }
  for (TrainingHook* hook : hooks_) hook->AfterSave(*checkpoint, step);
  return OkStatus();
}

Status TrainingLoop::End() {
  // After a signal there may be little time left: then wait only for a save of the last step, and
  // cancel others.
  if (saving_ != nullptr && saving_->cut() && (saving_->step() == global_step_ || !stopping())) {
    const Status saved = EndBackgroundSave();
    if (!saved.ok() && !IsTaskLoss(saved)) return saved;
  }
  saving_.reset();
  if (saver_ && options_.is_chief && saved_step_ != global_step_) RETURN_IF_ERROR(Save());
  for (TrainingHook* hook : hooks_) RETURN_IF_ERROR(hook->End(*session_, global_step_));
  return OkStatus();
}

}  // namespace penstock::client

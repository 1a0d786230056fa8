// SPDX-License-Identifier: Apache-2.0
#include "client/training_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/non_finite.h"
#include "distributed/rpc/ask_cluster.h"

namespace penstock::client {
namespace {

// The timeout of a step that is run again to find the origin of a NaN.
constexpr double kFindNanTimeoutSeconds = 60;

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

Output ReadStepAfter(const TrainingContext& context) {
  const auto after = context.program.ControlDependencies({context.step.train});
  return context.program.GlobalStep().Read();
}

}  // namespace

TrainingSteps::TrainingSteps(TrainingContext& context, TrainingSaves& saves)
    : context_(context),
      saves_(saves),
      step_after_(ReadStepAfter(context)),
      progress_(context.program, context.step.train, context.options.unchanged_steps_max) {}

Status TrainingSteps::Prepare(Session& session) {
  session_ = &session;
  return StepWith({}).status();
}

void TrainingSteps::Forget() {
  callables_.clear();
  session_ = nullptr;
}

void TrainingSteps::Abandon() {
  if (!under_way_.empty()) session_->Close().IgnoreError();
  under_way_.clear();
  blocked_ = OkStatus();
}

Status TrainingSteps::Run() {
  while (blocked_.ok() && MayStart()) blocked_ = Start();
  // If an error prevents the next step from starting, returns the error after the earlier steps
  // have ended.
  return under_way_.empty() ? std::exchange(blocked_, OkStatus()) : Finish();
}

// Returns whether another step may start: none is under way; or fewer than concurrent_steps are,
// the loop is not stopping, and those under way will not raise the global step to max_steps.
bool TrainingSteps::MayStart() const {
  const auto started = static_cast<int64_t>(under_way_.size());
  return started == 0 || (started < context_.options.concurrent_steps && !context_.stopping() &&
                          (context_.options.max_steps == 0 ||
                           context_.global_step + started < context_.options.max_steps));
}

Status TrainingSteps::Start() {
  // While other steps run, the global step is not known, so each step gets a number of its own.
  const int64_t step =
      under_way_.empty() ? context_.global_step : std::max(context_.global_step, next_step_);
  next_step_ = step + 1;
  for (TrainingHook* hook : context_.hooks) RETURN_IF_ERROR(hook->BeforeStep(step));
  std::vector<HookFetches> wanted;
  ASSIGN_OR_RETURN(const Callable* const callable, StepWith(ExtraFetches(step, &wanted)));
  std::vector<Tensor> batch;
  if (context_.step.next_batch) {
    ASSIGN_OR_RETURN(batch, context_.step.next_batch(step));
  }
  const RunOptions run = context_.StepOptions();
  // Without concurrent steps, the step runs on this thread when its result is awaited.
  const bool traced = context_.options.trace != nullptr && context_.options.trace->Take(step);
  const auto run_step = [this, callable, batch, run, step, traced] {
    return traced ? RunTraced(*callable, step, batch, run) : (*callable)(batch, run);
  };
  StartedStep started = context_.options.concurrent_steps > 1
                            ? StartedStep(run_step, *context_.options.scheduler)
                            : StartedStep(run_step);
  under_way_.push_back({std::move(batch), std::move(wanted), std::move(started)});
  return OkStatus();
}

StatusOr<std::vector<Tensor>> TrainingSteps::RunTraced(const Callable& callable, int64_t step,
                                                       const std::vector<Tensor>& batch,
                                                       RunOptions run) const {
  run.trace = true;
  RunMetadata metadata;
  const auto now_ns = [this] { return context_.options.env->WallMicros() * 1000; };
  const int64_t start_ns = now_ns();
  auto outputs = callable(batch, run, &metadata);
  if (outputs.ok()) {
    context_.options.trace->Add({step, start_ns, now_ns(), std::move(metadata.step_stats)});
    AskForRoads();
  }
  return outputs;
}

// Asks the cluster, once, which transports its tasks use between each other, for the trace's
// timeline.
void TrainingSteps::AskForRoads() const {
  const TrainingOptions& options = context_.options;
  const bool in_cluster = !options.target.empty() && options.new_session == nullptr;
  if (!in_cluster || options.trace->has_roads()) return;
  auto roads = AskRoads(options.target);
  if (!roads.ok()) {
    context_.Say(
        LogLevel::kWarning, "no_roads",
        StrCat("the timeline will not name the transports of tensors: ", roads.status().message()));
  }
  options.trace->SetRoads(roads.ok() ? *std::move(roads) : StepTrace::Roads());
}

Status TrainingSteps::Finish() {
  const auto ran = under_way_.front().outputs.get();
  const std::vector<Tensor> batch = std::move(under_way_.front().batch);
  const std::vector<HookFetches> wanted = std::move(under_way_.front().wanted);
  under_way_.pop_front();
  if (!ran.ok()) {
    Status why = ran.status();
    for (TrainingHook* hook : context_.hooks) why = hook->StepFailed(why);
    return why;
  }
  const std::vector<Tensor>& outputs = *ran;
  context_.global_step = std::max(context_.global_step, outputs[0].scalar<int64_t>());
  std::string line;
  RETURN_IF_ERROR(progress_.Add(outputs[0].scalar<int64_t>(), &line));
  if (!line.empty()) context_.Say(LogLevel::kWarning, "no_new_step", line);
  StepResult result{.global_step = context_.global_step};
  for (size_t i = 0; i < context_.step.measures.size(); ++i) {
    const std::string& name = context_.step.measures[i].first;
    ASSIGN_OR_RETURN(result.measures[name], ScalarValue(name, outputs[i + 1]));
    if (name == context_.step.loss) RETURN_IF_ERROR(CheckLoss(result.measures[name], batch));
  }
  PassExtraFetches(wanted, outputs);
  return PassResult(result);
}

// Passes the result of a step to the hooks. If the group needs a new session, its AfterStep returns
// an error although all members have taken the step. So the other hooks are still called, and if
// one of them stops the training, the loop ends instead.
Status TrainingSteps::PassResult(const StepResult& result) {
  bool stop = false;
  Status regroup;
  for (TrainingHook* hook : context_.hooks) {
    Status after = hook->AfterStep(result, &stop);
    if (hook == context_.options.group) {
      regroup = std::move(after);
    } else if (!after.ok()) {
      return after;
    }
  }
  if (stop) context_.stop_requested.store(true);
  return stop ? OkStatus() : regroup;
}

// Returns the prepared step that also fetches `extra`, preparing it if necessary.
StatusOr<const Callable*> TrainingSteps::StepWith(const Outputs& extra) {
  std::vector<std::string> key;
  for (const Output& output : extra) key.push_back(output.name());
  const auto known = callables_.find(key);
  if (known != callables_.end()) return &known->second;
  std::vector<TensorRef> feeds(context_.step.inputs.begin(), context_.step.inputs.end());
  std::vector<TensorRef> fetches = {step_after_};
  for (const auto& [name, output] : context_.step.measures) fetches.push_back(output);
  fetches.insert(fetches.end(), extra.begin(), extra.end());
  ASSIGN_OR_RETURN(Callable step, session_->MakeCallable(feeds, fetches, {context_.step.train}));
  return &callables_.emplace(std::move(key), std::move(step)).first->second;
}

// Returns the tensors that hooks want from the step that begins with `step`. Records in `*wanted`,
// in the same order, how many each hook wants.
Outputs TrainingSteps::ExtraFetches(int64_t step, std::vector<HookFetches>* wanted) const {
  Outputs extra;
  for (TrainingHook* hook : context_.hooks) {
    const Outputs wants = hook->ExtraFetches(step);
    if (!wants.empty()) wanted->push_back({hook, wants.size()});
    extra.insert(extra.end(), wants.begin(), wants.end());
  }
  return extra;
}

// Passes the values of the extra fetches to the hooks that wanted them. In `outputs` they follow
// the global step and the measures.
void TrainingSteps::PassExtraFetches(const std::vector<HookFetches>& wanted,
                                     const std::vector<Tensor>& outputs) const {
  auto next = outputs.begin() + 1 + static_cast<int64_t>(context_.step.measures.size());
  for (const auto& [hook, count] : wanted) {
    const auto end = next + static_cast<int64_t>(count);
    hook->Fetched({next, end});
    next = end;
  }
}

Status TrainingSteps::CheckLoss(double loss, const std::vector<Tensor>& batch) {
  if (std::isfinite(loss)) return OkStatus();
  if (context_.options.stop_on_nan) return NonFiniteLoss(loss, batch);
  if (!std::exchange(logged_non_finite_, true)) {
    context_.Say(LogLevel::kWarning, "loss_not_finite",
                 StrCat(context_.step.loss, " is ", loss, " after step ", context_.global_step,
                        "; training goes on, because stop_on_nan is off"));
  }
  return OkStatus();
}

Status TrainingSteps::NonFiniteLoss(double loss, const std::vector<Tensor>& batch) {
  Output output;
  for (const auto& [name, measure] : context_.step.measures) {
    if (name == context_.step.loss) output = measure;
  }
  std::vector<Feed> feeds;
  for (size_t i = 0; i < batch.size(); ++i) feeds.push_back({context_.step.inputs[i], batch[i]});
  saves_.FinishOrCancel();
  const double seconds = std::min(context_.options.step_seconds, kFindNanTimeoutSeconds);
  NonFiniteOrigin origin(context_.program, output, feeds, *session_, saves_.saver(),
                         context_.options.checkpoint_dir, static_cast<int64_t>(seconds * 1e3),
                         *context_.options.env);
  const auto devices = session_->ListDevices();
  const std::string task = devices.ok() && !devices->empty()
                               ? StrCat(" of ", devices->front().name.Task().ToString())
                               : "";
  return InvalidArgument(context_.step.loss, " is ", loss, " after step ", context_.global_step,
                         task, ": ", origin.Describe(), saves_.SavedUpToText());
}

}  // namespace penstock::client

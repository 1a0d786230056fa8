// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_training.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "client/device_setter.h"
#include "client/optimizers.h"
#include "client/replicate.h"
#include "core/op/gradient.h"

namespace penstock::simulation {
namespace {

using client::Program;
using client::Variable;

constexpr int kRows = 2, kWidth = 3;
constexpr int64_t kThinkNanosMax = 150'000'000;
// The factor by which a client waits longer between steps in the second half of the training while
// more faults are due.
constexpr int64_t kLinger = 20;
constexpr char kClientHost[] = "client";

std::string WithoutNumbers(string_view text) {
  std::string kept;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) kept += c;
  }
  return kept;
}

}  // namespace

struct SimTraining::Model {
  explicit Model(const SimTrainingOptions& options)
      : scope(program.DeviceFunctionScope(client::ReplicaDeviceSetter(
            {.ps_tasks = options.ps, .worker_device = "/job:worker/task:0"}))),
        once(program) {
    for (int ps = 0; ps < options.ps; ++ps) {
      const auto there = program.DeviceScope(StrCat("/job:ps/task:", ps));
      variables.emplace_back(program, StrCat("w", ps), Shape({kWidth, kWidth}),
                             client::GlorotUniform(ps + 1));
      variables.emplace_back(program, StrCat("b", ps), Shape({kWidth}), client::Zeros());
    }
    std::vector<std::string> workers;
    for (int i = 0; i < options.workers; ++i) {
      workers.push_back(StrCat("/job:worker/task:", i));
      inputs.push_back(
          CallIn(program, "Placeholder", {},
                 {{"dtype", DType::kFloat}, {"shape", PartialShape({kRows, kWidth})}}));
    }
    const client::Towers towers =
        client::BuildTowers(program, optimizer, workers, [&](int i) { return Loss(inputs[i]); });
    train = program.Group({once.Apply(optimizer, towers.gradients), Touch(options)}, "train");
    loss = towers.loss;
    for (const Variable& slot : optimizer.slots()) variables.push_back(slot);
  }
  // Changes a variable of each ps twice, before the gradients arrive. A repeated step changes the
  // variable again, so the variable is not compared with a training without faults. But it shows
  // whether a follower applies only a part of a step, or applies changes in another order.
  Output Touch(const SimTrainingOptions& options) {
    Outputs touched;
    for (int ps = 0; ps < options.ps; ++ps) {
      const auto there = program.DeviceScope(StrCat("/job:ps/task:", ps));
      const Variable touches(program, StrCat("touches", ps), Shape(), client::Zeros());
      const Output one = Constant(program, Tensor::Scalar(1.0f));
      const auto second = program.ControlDependencies({touches.AssignAdd(one)});
      touched.push_back(touches.AssignAdd(one));
    }
    return program.Group(touched, "touch");
  }
  Output Loss(Output x) {
    Outputs losses;
    const Output both = Constant(program, Tensor::Vector<int32_t>({0, 1}));
    for (size_t i = 0; i < variables.size(); i += 2) {
      losses.push_back(Mean(Square(MatMul(x, variables[i]) + variables[i + 1] - x * x), both));
    }
    return AddN(losses);
  }

  Program program;
  decltype(program.DeviceFunctionScope(nullptr)) scope;
  client::ExactlyOnce once;
  client::Momentum optimizer{0.1, 0.9};
  std::vector<Variable> variables;
  Outputs inputs;
  Output train, loss;
};

SimTraining::SimTraining(const SimMachine& machine, const SimTrainingOptions& options,
                         SeenByClients& seen, std::function<SimProcess*()> find_master)
    : machine_(machine),
      options_(options),
      seen_(seen),
      find_master_(std::move(find_master)),
      env_(*machine.scheduler, *machine.files),
      end_{kClientHost, env_.RandomU64() | 1},
      model_(std::make_unique<Model>(options)) {
  client::TrainingOptions loop{.checkpoint_dir = "/checkpoints",
                               .save_every_steps = options.save_every_steps,
                               .keep_checkpoints = 3,
                               .retry_seconds = 0.2,
                               .step_seconds = 30,
                               .max_failures_in_a_row = 1'000,
                               .stop_on_signals = false};
  loop.new_session = [this]() -> StatusOr<std::unique_ptr<SessionInterface>> {
    SimProcess* const master = find_master_();
    if (master == nullptr) return Unavailable("connection refused: no master is there");
    ++seen_.sessions;
    SessionOptions session{.operation_timeout_ms = 5'000};
    return machine_.network->NewSession(end_, master->task().self(), session);
  };
  loop.say = [this](const std::string& line) { Say(line); };
  loop.env = &env_;
  loop.scheduler = machine.scheduler;
  loop_ = std::make_unique<client::TrainingLoop>(
      model_->program,
      client::TrainingStep{.train = model_->train,
                           .inputs = model_->inputs,
                           .next_batch = [this](int64_t) { return NextBatch(); },
                           .measures = {{"loss", model_->loss}},
                           .once = &model_->once},
      loop);
  loop_->AddHook(this);
}

SimTraining::~SimTraining() = default;

void SimTraining::Kill() {
  env_.Kill();
  machine_.network->Kill(end_, /*silent=*/false);
  loop_->RequestStop();
}

Status SimTraining::Run(std::string* weights) {
  RETURN_IF_ERROR(model_->program.status());
  RETURN_IF_ERROR(loop_->Run());
  *weights = weights_;
  return OkStatus();
}

Status SimTraining::End(client::Session& session, int64_t) {
  ASSIGN_OR_RETURN(weights_, Weights(session));
  return OkStatus();
}

StatusOr<std::string> SimTraining::Weights(client::Session& session) const {
  std::string bits;
  for (const Variable& variable : model_->variables) {
    ASSIGN_OR_RETURN(const Tensor value, session.Fetch(variable));
    for (const float each : value.flat<float>()) StrAppend(&bits, absl::StrFormat("%a ", each));
  }
  return bits;
}

StatusOr<std::vector<Tensor>> SimTraining::NextBatch() {
  if (next_batch_ >= options_.steps) return OutOfRange("there are no more batches");
  std::vector<Tensor> batch;
  for (int i = 0; i < options_.workers; ++i) {
    Tensor x(DType::kFloat, {kRows, kWidth});
    int64_t at = (next_batch_ * options_.workers + i) * x.num_elements();
    for (float& value : x.mutable_flat<float>()) {
      value = static_cast<float>(std::sin(1.3 * static_cast<double>(at++)));
    }
    batch.push_back(std::move(x));
  }
  ++next_batch_;
  return batch;
}

void SimTraining::Violation(const std::string& text) {
  if (!alive()) return;
  seen_.violations.push_back(text);
  machine_.say("VIOLATION: " + text);
}

void SimTraining::Say(const std::string& line) {
  if (!alive()) return;
  machine_.say(StrCat(kClientHost, ": ", line));
  if (absl::StartsWith(line, "NOT SAVED")) unsaved_since_ = seen_.step;
  const bool lost = absl::StartsWith(line, "restored") && seen_.step > 0;
  if (lost && options_.replicas) {
    Violation("with replicas, no fault should have made the training go back to a checkpoint");
  }
}

Status SimTraining::SessionReady(client::Session& session, int64_t global_step) {
  steps_since_session_ = 0;
  unsaved_since_ = -1;
  if (global_step < seen_.saved_step && !seen_.damaged) {
    Violation(StrCat("goes on at step ", global_step, " although a checkpoint of step ",
                     seen_.saved_step, " or later was written"));
  }
  if (options_.replicas && global_step < seen_.step) {
    Violation(StrCat("step ", seen_.step, " was acknowledged and is lost: the variables are at ",
                     global_step));
  }
  auto begun = model_->once.Begin(session);
  if (!begun.ok()) return begun.status();
  next_batch_ = *begun;
  return OkStatus();
}

Status SimTraining::BeforeStep(int64_t global_step) {
  const auto think_ns = static_cast<int64_t>(env_.RandomU64() % kThinkNanosMax);
  const bool linger = seen_.faults_due && global_step >= options_.steps / 2;
  env_.SleepForNanos(linger ? think_ns * kLinger : think_ns);
  step_began_ns_ = env_.NowNanos();
  return OkStatus();
}

void SimTraining::CheckTime() {
  const int64_t took_ms = (env_.NowNanos() - step_began_ns_) / 1'000'000;
  if (took_ms <= options_.step_limit_ms) return;
  Violation(StrCat("a step took ", took_ms, " ms, more than ", options_.step_limit_ms));
}

Status SimTraining::AfterStep(const client::StepResult& result, bool*) {
  CheckTime();
  if (!alive()) return OkStatus();
  seen_.step = result.global_step;
  if (seen_.acknowledged) seen_.acknowledged();
  ++steps_since_session_;
  // A save that was due within the last period may still be under way, and may fail. The save
  // before it has ended, and a failure would have been reported.
  const int64_t certain = 2 * options_.save_every_steps;
  if (steps_since_session_ > certain && unsaved_since_ < 0) {
    seen_.saved_step = std::max(seen_.saved_step, result.global_step - certain);
  }
  if (unsaved_since_ >= 0 && result.global_step > unsaved_since_ + 2 * options_.save_every_steps) {
    unsaved_since_ = -1;
    steps_since_session_ = 0;
  }
  machine_.say(absl::StrFormat("%s: step %d, loss %a", kClientHost, result.global_step,
                               result.measures.at("loss")));
  return OkStatus();
}

Status SimTraining::StepFailed(const Status& why) {
  CheckTime();
  const Status explained = model_->once.Explain(why);
  if (alive() && !absl::IsOutOfRange(why)) CheckError(explained);
  return explained;
}

void SimTraining::CheckError(const Status& why) {
  seen_.errors.insert(StrCat(absl::StatusCodeToString(why.code()), ": ",
                             WithoutNumbers(why.message().substr(0, 160))));
  if (!absl::IsUnavailable(why) && !absl::IsAborted(why)) {
    Violation(StrCat("a step failed with ", why.ToString()));
  }
  if (!absl::StrContains(why.message(), "/job:")) {
    Violation(StrCat("the error of a step names no task: ", why.ToString()));
  }
}

}  // namespace penstock::simulation

// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/elastic_client.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "core/op/gradient.h"

namespace penstock::simulation {
namespace {

using client::Program;
using client::Variable;

constexpr int kRows = 2, kWidth = 3;
// How long a client takes for its next batch, at most.
constexpr int64_t kThinkNanosMax = 60'000'000;

std::vector<std::string> ElasticNames(int workers) {
  std::vector<std::string> names;
  for (int w = 0; w < workers; ++w) names.push_back(StrCat("/job:worker/task:", w));
  return names;
}

}  // namespace

struct ElasticClient::Model {
  Model(const ElasticOptions& options, int worker, client::ElasticGroup::Options group_options)
      : group(program, std::move(group_options)),
        replicas(program, {.workers = options.workers, .worker = worker, .group = &group}),
        scope(program.DeviceFunctionScope(replicas.Devices())),
        x(CallIn(program, "Placeholder", {},
                 {{"dtype", DType::kFloat}, {"shape", PartialShape({kRows, kWidth})}})),
        w(program, "w", {kWidth, 1}, client::GlorotUniform(1)) {
    const Output both = Constant(program, Tensor::Vector<int32_t>({0, 1}));
    const Output own = Mean(Square(MatMul(x, w) - 1), both);
    loss = replicas.Average(own);
    const auto gradients = replicas.Average(optimizer.ComputeGradients(program, own));
    train = optimizer.ApplyGradients(program, gradients, program.GlobalStep());
    agree = replicas.Agree();
  }

  Program program;
  client::ElasticGroup group;
  client::CollectiveReplicas replicas;
  decltype(program.DeviceFunctionScope(nullptr)) scope;
  client::Momentum optimizer{0.05, 0.9};
  Output x;
  Variable w;
  Output loss, train, agree;
};

ElasticClient::ElasticClient(const SimMachine& machine, const ElasticOptions& options, int worker,
                             SimProcess& process, ElasticSeen& seen)
    : machine_(machine),
      options_(options),
      worker_(worker),
      process_(process),
      seen_(seen),
      env_(*machine.scheduler, *machine.files),
      end_{StrCat("client-", worker), env_.RandomU64() | 1} {
  const auto new_session =
      [this](const SessionOptions& session) -> StatusOr<std::unique_ptr<SessionInterface>> {
    if (!process_.alive()) return Unavailable("connection refused: worker ", worker_, " is gone");
    return machine_.network->NewSession(end_, process_.task().self(), session);
  };
  model_ = std::make_unique<Model>(
      options, worker,
      client::ElasticGroup::Options{.workers = ElasticNames(options.workers),
                                    .worker = worker,
                                    .form_seconds = 3,
                                    .rejoin_seconds = 1,
                                    .pause_seconds = 5,
                                    .present_seconds = 3,
                                    .new_session = new_session,
                                    .env = &env_,
                                    .scheduler = machine.scheduler});
  client::TrainingOptions loop{.target = "simulated",
                               .agree = model_->agree,
                               .group = &model_->group,
                               .checkpoint_dir = "/checkpoints",
                               .save_every_steps = 10,
                               .keep_checkpoints = 3,
                               .max_steps = options.data_end ? 0 : options.steps,
                               .wait_seconds = 90,
                               .retry_seconds = 0.2,
                               .connect_seconds = 2,
                               .step_seconds = 60,
                               .max_failures_in_a_row = 1'000,
                               .stop_on_signals = false};
  loop.say = [this](const std::string& line) {
    if (alive()) seen_.say(worker_, line);
  };
  loop.env = &env_;
  loop.scheduler = machine.scheduler;
  loop_ = std::make_unique<client::TrainingLoop>(
      model_->program,
      client::TrainingStep{.train = model_->train,
                           .inputs = {model_->x},
                           .next_batch = [this](int64_t step) { return NextBatch(step); },
                           .measures = {{"loss", model_->loss}}},
      loop);
  loop_->AddHook(this);
}

ElasticClient::~ElasticClient() = default;

void ElasticClient::Run() {
  status_ = model_->program.status();
  if (status_.ok()) status_ = loop_->Run();
  ended_ = true;
}

void ElasticClient::Kill() {
  env_.Kill();
  machine_.network->Kill(end_, /*silent=*/false);
  loop_->RequestStop();
}

StatusOr<std::vector<Tensor>> ElasticClient::NextBatch(int64_t step) {
  if (options_.data_end && step >= options_.steps) return OutOfRange("there are no more batches");
  env_.SleepForNanos(static_cast<int64_t>(env_.RandomU64() % kThinkNanosMax));
  Tensor x(DType::kFloat, {kRows, kWidth});
  int64_t at = model_->group.BatchNumber(step) * x.num_elements();
  for (float& value : x.mutable_flat<float>()) {
    value = static_cast<float>(std::sin(1.3 * static_cast<double>(at++)));
  }
  return std::vector<Tensor>{std::move(x)};
}

void ElasticClient::Violation(const std::string& text) {
  if (!alive()) return;
  seen_.violations.push_back(StrCat("worker ", worker_, ": ", text));
  seen_.say(worker_, "VIOLATION: " + text);
}

Status ElasticClient::SessionReady(client::Session&, int64_t global_step) {
  if (!alive()) return OkStatus();
  const client::ElasticGroup& group = model_->group;
  step_ = global_step;
  seen_.formed += group.is_chief() ? 1 : 0;
  if (2 * group.size() <= options_.workers) {
    Violation(StrCat("trains in a group of ", group.size(), ", which is no majority"));
  }
  const auto [known, added] = seen_.groups.emplace(group.key(), group.Describe());
  if (known->second != group.Describe()) {
    Violation(StrCat("group ", group.key(), " is '", group.Describe(),
                     "', but for another member '", known->second, "'"));
  }
  return OkStatus();
}

Status ElasticClient::AfterStep(const client::StepResult& result, bool*) {
  if (!alive()) return OkStatus();
  step_ = result.global_step;
  const double loss = result.measures.at("loss");
  const client::ElasticGroup& group = model_->group;
  const int64_t batches = group.BatchNumber(step_ - 1) - group.rank();
  const auto [known, added] =
      seen_.losses.emplace(std::tuple(group.key(), step_, batches), loss);
  if (known->second != loss) {
    Violation(absl::StrFormat("the loss of step %d is %a, but %a for another member", step_, loss,
                              known->second));
  }
  return OkStatus();
}

void ElasticClient::HoldUpdates() {
  if (alive() && step_ >= options_.steps && seen_.last_save) seen_.last_save(worker_);
}

Status ElasticClient::End(client::Session& session, int64_t) {
  ASSIGN_OR_RETURN(const Tensor value, session.Fetch(model_->w));
  weights_.clear();
  for (const float each : value.flat<float>()) StrAppend(&weights_, absl::StrFormat("%a ", each));
  return OkStatus();
}

}  // namespace penstock::simulation

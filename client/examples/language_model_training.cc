// SPDX-License-Identifier: Apache-2.0
#include "client/examples/language_model_training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/device_setter.h"
#include "client/examples/all_reduce.h"
#include "client/examples/language_model_data.h"
#include "client/examples/task.h"
#include "client/optimizers.h"
#include "client/progress.h"
#include "client/replicate.h"
#include "client/run_queue_runners.h"
#include "client/training.h"

namespace penstock::examples {
namespace {

constexpr int kComposed = 3;

bool IsChief(const LanguageModelFlags& flags) {
  return flags.task.cluster.empty() || flags.task.is_chief();
}

struct Inputs {
  explicit Inputs(client::Program& program)
      : texts(Placeholder(program, DType::kUint8, {-1, -1}, "texts")),
        targets(Placeholder(program, DType::kUint8, {-1, -1}, "targets")),
        lengths(Placeholder(program, DType::kInt32, {-1}, "lengths")) {}
  static Output Placeholder(client::Program& program, DType dtype, const PartialShape& shape,
                            string_view name) {
    return CallIn(program, "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, name);
  }
  Output texts, targets, lengths;
};

// Computes the mean fraction of padding over all steps.
class AveragePadding final : public client::TrainingHook {
 public:
  Status AfterStep(const client::StepResult& result, bool* stop) override {
    sum_ += result.measures.at("padding");
    ++steps_;
    return OkStatus();
  }
  double average() const { return sum_ / static_cast<double>(std::max<int64_t>(1, steps_)); }

 private:
  double sum_ = 0;
  int64_t steps_ = 0;
};

// Makes the step of this task; with --sync, the step of all workers together, each with its own
// texts.
client::TrainingStep MakeStep(const LanguageModelFlags& flags, const LanguageModel& model,
                              const std::vector<std::string>& texts, client::Optimizer& optimizer,
                              client::QueueRunners& runners) {
  client::Program& program = runners.program();
  const std::vector<std::string> devices =
      flags.sync ? Workers(flags.task) : std::vector<std::string>{TaskName(flags.task)};
  Outputs padding;
  const auto towers = client::BuildTowers(program, optimizer, devices, [&](int tower) {
    // Each worker gets the texts in a different order.
    const QueuedBatch batch = QueueTexts(runners, texts, static_cast<int32_t>(flags.batch_size),
                                         flags.size.seed * 1000 + flags.task.task + tower);
    padding.push_back(batch.padding());
    return model.Bits(batch.inputs, batch.targets, batch.lengths);
  });
  // Gradients of recurrent nets sometimes explode, so limit their global norm.
  const auto clipped = client::ClipByGlobalNorm(towers.gradients, flags.clip);
  const Output train = optimizer.ApplyGradients(program, clipped.gradients, program.GlobalStep());
  return {.train = train,
          .measures = {{"bits", towers.loss},
                       {"padding", AddN(padding) / static_cast<double>(devices.size())}},
          .loss = "bits"};
}

// Makes the step of one of several replicas. Each replica holds all variables and has its own
// texts.
client::TrainingStep MakeReplicaStep(const LanguageModelFlags& flags, const LanguageModel& model,
                                     const std::vector<std::string>& texts,
                                     client::Optimizer& optimizer, client::QueueRunners& runners,
                                     AllReduce& all_reduce) {
  client::Program& program = runners.program();
  const QueuedBatch batch = QueueTexts(runners, texts, static_cast<int32_t>(flags.batch_size),
                                       flags.size.seed * 1000 + WorkerIndex(flags.task));
  const Output bits = model.Bits(batch.inputs, batch.targets, batch.lengths);
  const Output mean = all_reduce.replicas().Average(bits);
  const auto gradients = all_reduce.replicas().Average(optimizer.ComputeGradients(program, bits));
  const auto clipped = client::ClipByGlobalNorm(gradients, flags.clip);
  const Output train = optimizer.ApplyGradients(program, clipped.gradients, program.GlobalStep());
  all_reduce.AddAgree();
  return {
      .train = train, .measures = {{"bits", mean}, {"padding", batch.padding()}}, .loss = "bits"};
}

client::TrainingOptions LoopOptions(const LanguageModelFlags& flags, const std::string& target) {
  client::TrainingOptions options{.target = target,
                                  .is_chief = IsChief(flags),
                                  .chief = ChiefName(flags.task),
                                  .checkpoint_dir = flags.checkpoint_dir,
                                  .save_every_seconds = flags.save_every_seconds,
                                  .max_failed_saves_in_a_row = flags.max_failed_saves,
                                  .max_steps = flags.steps,
                                  .wait_seconds = flags.wait_seconds};
  // Asynchronous workers need only the parameter servers.
  if (!flags.task.cluster.empty() && !flags.sync) {
    options.session.device_filters = {"/job:ps", TaskName(flags.task)};
  }
  return options;
}

StatusOr<double> TestBits(client::Session& session, const Inputs& inputs, Output bits,
                          std::vector<std::string> texts, size_t batch_size) {
  std::stable_sort(texts.begin(), texts.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  double sum = 0, characters = 0;
  for (size_t begin = 0; begin < texts.size(); begin += batch_size) {
    const TextBatch batch = MakeBatch(texts, begin, std::min(begin + batch_size, texts.size()));
    double length = 0;
    for (const int32_t each : batch.lengths.flat<int32_t>()) length += each;
    ASSIGN_OR_RETURN(const Tensor mean, session.Fetch(bits, {{inputs.texts, batch.inputs},
                                                             {inputs.targets, batch.targets},
                                                             {inputs.lengths, batch.lengths}}));
    sum += mean.scalar<float>() * length;
    characters += length;
  }
  return sum / characters;
}

Status Compose(client::Session& session, Output text) {
  for (int i = 0; i < kComposed; ++i) {
    ASSIGN_OR_RETURN(const Tensor bytes, session.Fetch(text));
    std::string line;
    for (const uint8_t byte : bytes.flat<uint8_t>()) {
      if (byte != 0) line += static_cast<char>(byte);
    }
    std::printf("%%\n%s\n", line.c_str());
  }
  return OkStatus();
}

}  // namespace

Status TrainLanguageModel(const LanguageModelFlags& flags, const std::string& target) {
  ASSIGN_OR_RETURN(const Texts texts, ReadTexts(Env::Real(), flags.data_dir, flags.length_max));
  if (flags.batch_size > static_cast<int64_t>(texts.train.size())) {
    return InvalidArgument("--batch_size=", flags.batch_size, ": there are only ",
                           texts.train.size(), " texts");
  }
  const std::string self = TaskName(flags.task);
  client::Program program;
  const client::ReplicaDevices devices{.ps_tasks = NumTasks(flags.task, "ps"),
                                       .worker_device = self,
                                       .balance = client::Balance::kBytes};
  AllReduce all_reduce(program, flags.training, flags.task, target);
  const auto scope = program.DeviceFunctionScope(
      all_reduce.used() ? all_reduce.replicas().Devices() : client::ReplicaDeviceSetter(devices));
  const LanguageModel model(program, flags.size);
  client::QueueRunners runners(program);
  client::Adam optimizer(flags.learning_rate);
  const client::TrainingStep step =
      all_reduce.used() ? MakeReplicaStep(flags, model, texts.train, optimizer, runners, all_reduce)
                        : MakeStep(flags, model, texts.train, optimizer, runners);
  const Inputs test(program);
  const Output test_bits = model.Bits(test.texts, test.targets, test.lengths);
  const Output composed = model.Compose(static_cast<int32_t>(flags.length_max), flags.temperature);
  RETURN_IF_ERROR(program.status());

  const bool together = flags.sync || all_reduce.used();
  const auto towers = together ? static_cast<int64_t>(Workers(flags.task).size()) : 1;
  client::Progress progress(
      {.label = self, .max_steps = flags.steps, .examples_per_step = flags.batch_size * towers});
  client::ShowProgress show(progress);
  client::TrainingOptions options = LoopOptions(flags, target);
  if (all_reduce.used()) all_reduce.SetOptions(&options);
  client::TrainingLoop loop(program, step, options);
  AveragePadding padding;
  client::RunQueueRunners run_queues(runners);
  loop.AddHook(&show);
  loop.AddHook(&padding);
  loop.AddHook(&run_queues);
  RETURN_IF_ERROR(loop.Run());
  if (loop.global_step() < flags.steps) {
    return Cancelled("told to end at step ", loop.global_step(), " of ", flags.steps);
  }
  progress.Say(absl::StrFormat("%.1f %% of the positions were padding; without buckets: %.1f %%",
                               100 * padding.average(),
                               100 * UngroupedPadding(texts.train, flags.batch_size)));
  if (!(all_reduce.used() ? all_reduce.is_chief() : IsChief(flags))) return OkStatus();
  RETURN_IF_ERROR(Compose(loop.session(), composed));
  ASSIGN_OR_RETURN(const double mean,
                   TestBits(loop.session(), test, test_bits, texts.test, flags.batch_size));
  std::printf("test perplexity per character: %.3f\ntest bits per character: %.3f\n",
              std::exp2(mean), mean);
  return OkStatus();
}

}  // namespace penstock::examples

// SPDX-License-Identifier: Apache-2.0
#include "client/examples/language_model_training.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/device_setter.h"
#include "client/examples/language_model_data.h"
#include "client/examples/task.h"
#include "client/optimizers.h"
#include "client/progress.h"
#include "client/training.h"

namespace penstock::examples {
namespace {

constexpr int kComposed = 3;

struct Inputs {
  Inputs(client::Program& program, int64_t batch)
      : texts(Placeholder(program, DType::kUint8, {batch, -1}, "texts")),
        targets(Placeholder(program, DType::kUint8, {batch, -1}, "targets")),
        lengths(Placeholder(program, DType::kInt32, {batch}, "lengths")) {}
  static Output Placeholder(client::Program& program, DType dtype, const PartialShape& shape,
                            string_view name) {
    return CallIn(program, "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, name);
  }
  Outputs all() const { return {texts, targets, lengths}; }
  Output texts, targets, lengths;
};

std::vector<Tensor> Fed(TextBatch batch) {
  return {std::move(batch.inputs), std::move(batch.targets), std::move(batch.lengths)};
}

// The gradients of recurrent nets explode now and then; how long they may be together is limited.
Output Train(client::Program& program, client::Optimizer& optimizer, Output loss, double clip) {
  const auto gradients = optimizer.ComputeGradients(program, loss);
  return optimizer.ApplyGradients(program, client::ClipByGlobalNorm(gradients, clip).gradients,
                                  program.GlobalStep());
}

StatusOr<double> TestBits(client::Session& session, const Inputs& inputs, Output bits,
                          const Texts& texts, int64_t batch_size) {
  TextBatches batches(texts.test, batch_size, /*seed=*/1);
  double sum = 0, characters = 0;
  for (int64_t i = 0; i < batches.per_epoch(); ++i) {
    const TextBatch batch = batches.Get(i);
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
  const int64_t fewest = std::min(texts.train.size(), texts.test.size());
  if (flags.batch_size > fewest) {
    return InvalidArgument("--batch_size=", flags.batch_size, ": there are only ", fewest,
                           " texts");
  }
  const std::string self = TaskName(flags.task);
  client::Program program;
  const client::ReplicaDevices devices{.ps_tasks = NumTasks(flags.task, "ps"),
                                       .worker_device = self,
                                       .balance = client::Balance::kBytes};
  const auto scope = program.DeviceFunctionScope(client::ReplicaDeviceSetter(devices));
  const LanguageModel model(program, flags.size);
  const Inputs inputs(program, flags.batch_size);
  const Output bits = model.Bits(inputs.texts, inputs.targets, inputs.lengths);
  const Output composed = model.Compose(static_cast<int32_t>(flags.length_max), flags.temperature);
  client::Adam optimizer(flags.learning_rate);
  // Each worker sees the texts in an order of its own.
  TextBatches batches(texts.train, flags.batch_size, flags.size.seed * 1000 + flags.task.task);
  const client::TrainingStep step{.train = Train(program, optimizer, bits, flags.clip),
                                  .inputs = inputs.all(),
                                  .next_batch = [&](int64_t step) -> StatusOr<std::vector<Tensor>> {
                                    return Fed(batches.Get(step));
                                  },
                                  .measures = {{"bits", bits}}};
  RETURN_IF_ERROR(program.status());

  client::Progress progress(
      {.label = self, .max_steps = flags.steps, .examples_per_step = flags.batch_size});
  client::ShowProgress show(progress);
  const bool chief = self.empty() || flags.task.is_chief();
  client::TrainingOptions options{.target = target,
                                  .is_chief = chief,
                                  .chief = ChiefName(flags.task),
                                  .checkpoint_dir = flags.checkpoint_dir,
                                  .save_every_seconds = flags.save_every_seconds,
                                  .max_steps = flags.steps,
                                  .wait_seconds = flags.wait_seconds,
                                  .say = [&](const std::string& line) { progress.Say(line); }};
  // Workers train by themselves: they need nobody but the parameter servers.
  if (!self.empty()) options.session.device_filters = {"/job:ps", self};
  client::TrainingLoop loop(program, step, options);
  loop.AddHook(&show);
  RETURN_IF_ERROR(loop.Run());
  if (loop.global_step() < flags.steps) {
    return Cancelled("told to end at step ", loop.global_step(), " of ", flags.steps);
  }
  progress.Say(absl::StrFormat("%.1f %% of the steps were padding", 100 * batches.padding()));
  if (!chief) return OkStatus();
  RETURN_IF_ERROR(Compose(loop.session(), composed));
  ASSIGN_OR_RETURN(const double test,
                   TestBits(loop.session(), inputs, bits, texts, flags.batch_size));
  std::printf("test bits per character: %.3f\n", test);
  return OkStatus();
}

}  // namespace penstock::examples

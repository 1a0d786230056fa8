// SPDX-License-Identifier: Apache-2.0
//
// Model parallelism without naming devices: trains an LSTM of several layers, unrolled in time, to
// remember the first bit of a sequence. With --placement=auto the master spreads the layers over
// the workers by predicting step times. Then one worker computes the first layers of a time step
// while another worker computes the last layers of an earlier time step.
//
// Exit codes: as in language_model.cc.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client/examples/task.h"
#include "client/examples/training_flags.h"
#include "client/layers/layers.h"
#include "client/losses/losses.h"
#include "client/optimizers.h"
#include "client/progress.h"
#include "client/rnn.h"
#include "client/training.h"
#include "core/op/gradient.h"

namespace penstock::examples {
namespace {

constexpr char kProgram[] = "stacked_lstm";
constexpr char kAbout[] =
    "Trains an LSTM of several layers whose nodes the master places on the workers: in this "
    "process, or as one task of a cluster, whose first worker runs the steps of all.";

struct Flags {
  TaskConfig task;  // an empty cluster: everything in this process
  int64_t layers = 4, units = 128, length = 16, batch_size = 32, steps = 200;
  double learning_rate = 0.01;
  std::string placement = "auto", checkpoint_dir;
  double save_every_seconds = 60, wait_seconds = 300;
  int max_failed_saves = 0;
  bool log_device_placement = false;
};

// Returns a number for each sequence: above 0 if its first bit was 1. `bits` is float[batch,
// length].
Output Logits(client::Program& program, const Flags& flags, Output bits) {
  std::vector<std::shared_ptr<const client::RnnCell>> layers;
  for (int64_t i = 0; i < flags.layers; ++i) {
    layers.push_back(std::make_shared<client::LstmCell>(program, StrCat("layer", i),
                                                        i == 0 ? 1 : flags.units, flags.units,
                                                        client::RnnCellOptions{.seed = 1 + i}));
  }
  const client::StackedCell cell(std::move(layers));
  const client::RnnFunction step = cell.Read();
  const Output batch = Constant(program, Tensor::Scalar(static_cast<int32_t>(flags.batch_size)));
  Outputs state = ZeroState(program, cell, batch);
  Output last;
  for (const Output& moment : CallN("Split", {Constant(program, Tensor::Scalar<int32_t>(1)), bits},
                                    {{"num_split", flags.length}})) {
    client::RnnStep next = step(moment, state);
    last = next.output;
    state = std::move(next.state);
  }
  const client::layers::Dense answer(program, "answer", flags.units, 1,
                                     {.kernel = client::GlorotUniform(99)});
  return Reshape(answer(last), Constant(program, Tensor::Vector<int32_t>({-1})));
}

// Returns the bits and the answers of one step; they are the same in each run.
std::vector<Tensor> DrawBatch(const Flags& flags, int64_t step) {
  std::mt19937_64 random(static_cast<uint64_t>(step));
  Tensor bits(DType::kFloat, {flags.batch_size, flags.length});
  Tensor first(DType::kFloat, {flags.batch_size});
  for (float& bit : bits.mutable_flat<float>()) bit = static_cast<float>(random() & 1);
  for (int64_t row = 0; row < flags.batch_size; ++row) {
    first.mutable_flat<float>()[row] = bits.flat<float>()[row * flags.length];
  }
  return {bits, first};
}

class LastLoss final : public client::TrainingHook {
 public:
  Status AfterStep(const client::StepResult& result, bool* stop) override {
    loss_ = result.measures.at("loss");
    return OkStatus();
  }
  double loss() const { return loss_; }

 private:
  double loss_ = 0;
};

Status Train(const Flags& flags, const std::string& target) {
  client::Program program;
  const Output bits =
      CallIn(program, "Placeholder", {},
             {{"dtype", DType::kFloat}, {"shape", PartialShape({flags.batch_size, flags.length})}},
             "bits");
  const Output first =
      CallIn(program, "Placeholder", {},
             {{"dtype", DType::kFloat}, {"shape", PartialShape({flags.batch_size})}}, "first");
  const Output loss = client::SigmoidCrossEntropy(first, Logits(program, flags, bits));
  const Output train = client::Adam(flags.learning_rate).Minimize(program, loss);
  RETURN_IF_ERROR(program.status());

  const std::string self = TaskName(flags.task);
  client::Progress progress(
      {.label = self, .max_steps = flags.steps, .examples_per_step = flags.batch_size});
  client::TrainingOptions options{.target = target,
                                  .chief = ChiefName(flags.task),
                                  .checkpoint_dir = flags.checkpoint_dir,
                                  .save_every_seconds = flags.save_every_seconds,
                                  .max_failed_saves_in_a_row = flags.max_failed_saves,
                                  .max_steps = flags.steps,
                                  .wait_seconds = flags.wait_seconds};
  options.session.log_device_placement = flags.log_device_placement;
  options.session.placement = flags.placement;
  // Leaves the parameter servers out, because the variables are on the workers, with the layers.
  if (!flags.task.cluster.empty()) options.session.device_filters = Workers(flags.task);
  client::ShowProgress show(progress);
  LastLoss last;
  client::TrainingLoop loop(program,
                            {.train = train,
                             .inputs = {bits, first},
                             .next_batch = [&](int64_t step) { return DrawBatch(flags, step); },
                             .measures = {{"loss", loss}}},
                            options);
  loop.AddHook(&show);
  loop.AddHook(&last);
  RETURN_IF_ERROR(loop.Run());
  if (loop.global_step() < flags.steps) {
    return Cancelled("told to end at step ", loop.global_step(), " of ", flags.steps);
  }
  std::printf("loss: %.4f\n", last.loss());
  return OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(kAbout);
  AddCount(app, "--layers", flags.layers, "");
  AddCount(app, "--units", flags.units, "units of each layer");
  AddCount(app, "--length", flags.length, "number of bits of a sequence");
  AddCount(app, "--batch_size", flags.batch_size, "sequences per step");
  app.add_option("--learning_rate", flags.learning_rate)
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  AddPlacementFlag(app, flags.placement);
  app.add_flag("--log_device_placement", flags.log_device_placement,
               "print each node's device, whenever the step is placed");
  AddTrainingFlags(app, flags);
  const auto ended = ParseFlags(kProgram, app, argc, argv, &flags.task);
  if (ended.has_value()) return *ended;
  return RunTask({.program = kProgram, .task = flags.task, .chief_drives = true},
                 [&](const std::string& target) { return Train(flags, target); });
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }

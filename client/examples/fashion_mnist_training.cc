// SPDX-License-Identifier: Apache-2.0
#include "client/examples/fashion_mnist_training.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/device_setter.h"
#include "client/examples/fashion_mnist_data.h"
#include "client/examples/fashion_mnist_model.h"
#include "client/examples/fashion_mnist_records.h"
#include "client/examples/task.h"
#include "client/optimizers.h"
#include "client/progress.h"
#include "client/replicate.h"
#include "client/run_queue_runners.h"
#include "client/training.h"

namespace penstock::examples {
namespace {

using client::Adam;
using client::Program;
using client::TrainingStep;

constexpr int64_t kTestBatch = 500;
constexpr int64_t kFirstTracedStep = 100;  // by then all is warm

Output Fed(Program& program, const PartialShape& shape, string_view name) {
  return CallIn(program, "Placeholder", {}, {{"dtype", DType::kUint8}, {"shape", shape}}, name);
}
PictureBatch FedPictures(Program& program) {
  return {Fed(program, {-1, 28, 28}, "images"), Fed(program, {-1}, "labels")};
}

// The tasks that compute, in order of name.
std::vector<std::string> Workers(const Flags& flags) {
  std::vector<std::string> workers;
  for (const auto& [job, tasks] : flags.task.cluster.jobs()) {
    if (job == "ps") continue;
    for (const auto& [index, address] : tasks) {
      workers.push_back(StrCat("/job:", job, "/task:", index));
    }
  }
  return workers;
}

struct Trainer {
  explicit Trainer(const Flags& flags) : flags(flags), optimizer(flags.learning_rate) {}

  // What the tower numbered so trains on: fed, or read where it computes.
  PictureBatch TowerInputs(int tower) {
    if (flags.input == "tfrecord") {
      auto batch = ReadPictureBatches(runners, Env::Real(), flags.data_dir,
                                      static_cast<int32_t>(flags.batch_size),
                                      flags.seed * 1000 + flags.task.task + tower);
      if (batch.ok()) return *batch;
      program.Fail(batch.status());
    }
    const PictureBatch fed = FedPictures(program);
    step.inputs.push_back(fed.images);
    step.inputs.push_back(fed.labels);
    return fed;
  }

  // A step of this task alone.
  void BuildStep() {
    const PictureBatch batch = TowerInputs(0);
    const Measures measures = Measure(model(batch.images), batch.labels);
    step.train = optimizer.Minimize(program, measures.loss);
    step.measures = {{"loss", measures.loss}, {"accuracy", measures.accuracy}};
  }

  // A step of all workers together.
  void BuildSyncStep() {
    Outputs accuracies;
    const std::vector<std::string> workers = Workers(flags);
    const auto towers = BuildTowers(program, optimizer, workers, [&](int tower) {
      const PictureBatch batch = TowerInputs(tower);
      const Measures measures = Measure(model(batch.images), batch.labels);
      accuracies.push_back(measures.accuracy);
      return measures.loss;
    });
    step.train = optimizer.ApplyGradients(program, towers.gradients, program.GlobalStep());
    step.measures = {{"loss", towers.loss},
                     {"accuracy", AddN(accuracies) / static_cast<double>(workers.size())}};
  }

  Status Build() {
    const client::ReplicaDevices devices{.ps_tasks = flags.num_tasks("ps"),
                                         .worker_device = TaskName(flags.task),
                                         .balance = client::Balance::kBytes};
    const auto scope = program.DeviceFunctionScope(client::ReplicaDeviceSetter(devices));
    ASSIGN_OR_RETURN(model, MakeModel(program, flags.model, flags.seed));
    flags.sync ? BuildSyncStep() : BuildStep();
    test = FedPictures(program);
    test_accuracy = Measure(model(test.images), test.labels).accuracy;
    return program.status();
  }

  StatusOr<double> TestAccuracy(client::Session& session, const Pictures& pictures) const {
    double sum = 0;
    for (int64_t begin = 0; begin < pictures.size(); begin += kTestBatch) {
      const int64_t end = std::min(begin + kTestBatch, pictures.size());
      const Pictures part = pictures.Slice(begin, end);
      ASSIGN_OR_RETURN(
          const Tensor accuracy,
          session.Fetch(test_accuracy, {{test.images, part.images}, {test.labels, part.labels}}));
      sum += accuracy.scalar<float>() * static_cast<double>(end - begin);
    }
    return sum / static_cast<double>(pictures.size());
  }

  const Flags& flags;
  Program program;
  Adam optimizer;
  client::QueueRunners runners{program};
  Model model;
  TrainingStep step;
  PictureBatch test;
  Output test_accuracy;
};

client::TrainingOptions LoopOptions(const Flags& flags, const std::string& target,
                                    client::Progress& progress) {
  client::TrainingOptions options{.target = target,
                                  .is_chief = !flags.distributed() || flags.task.is_chief(),
                                  .chief = ChiefName(flags.task),
                                  .checkpoint_dir = flags.checkpoint_dir,
                                  .save_every_steps = flags.save_every_steps,
                                  .save_every_seconds = flags.save_every_seconds,
                                  .max_steps = flags.steps,
                                  .concurrent_steps = flags.concurrent_steps,
                                  .wait_seconds = flags.wait_seconds,
                                  .say = [&](const std::string& line) { progress.Say(line); }};
  // A worker that trains by itself needs nobody but the parameter servers: it neither waits for
  // the others nor notices when they are gone.
  if (flags.distributed() && !flags.sync) {
    options.session.device_filters = {"/job:ps", TaskName(flags.task)};
  }
  return options;
}

// For all towers of a step.
StatusOr<std::vector<Tensor>> FedBatch(Batches& batches, int64_t step, int64_t towers) {
  std::vector<Tensor> fed;
  for (int64_t tower = 0; tower < towers; ++tower) {
    Pictures batch = batches.Get(step * towers + tower);
    fed.push_back(std::move(batch.images));
    fed.push_back(std::move(batch.labels));
  }
  return fed;
}

}  // namespace

Status TrainFashionMnist(const Flags& flags, const std::string& target) {
  Trainer trainer(flags);
  RETURN_IF_ERROR(trainer.Build());
  const bool fed = !trainer.step.inputs.empty();
  const int64_t towers = flags.sync ? static_cast<int64_t>(Workers(flags).size()) : 1;
  FashionMnist data;
  std::optional<Batches> batches;
  if (fed) {
    ASSIGN_OR_RETURN(data, ReadFashionMnist(Env::Real(), flags.data_dir));
    if (flags.batch_size > data.train.size()) {
      return InvalidArgument("--batch_size=", flags.batch_size, ": there are only ",
                             data.train.size(), " pictures");
    }
    // Each worker sees the pictures in an order of its own.
    batches.emplace(data.train, flags.batch_size, flags.seed * 1000 + flags.task.task);
    trainer.step.next_batch = [&](int64_t step) { return FedBatch(*batches, step, towers); };
  } else {
    ASSIGN_OR_RETURN(data.test, ReadTestRecords(Env::Real(), flags.data_dir));
  }
  client::Progress progress({.label = TaskName(flags.task),
                             .max_steps = flags.steps,
                             .examples_per_step = flags.batch_size * towers});
  client::ShowProgress show(progress);
  client::TrainingOptions options = LoopOptions(flags, target, progress);
  client::StepTrace trace({.first_step = std::min(kFirstTracedStep, flags.steps / 2)});
  if (options.is_chief && !flags.trace_file.empty()) options.trace = &trace;
  client::TrainingLoop loop(trainer.program, trainer.step, options);
  loop.AddHook(&show);
  client::RunQueueRunners run_queues(trainer.runners);
  loop.AddHook(&run_queues);
  RETURN_IF_ERROR(loop.Run());
  if (loop.global_step() < flags.steps) {
    return Cancelled("told to end at step ", loop.global_step(), " of ", flags.steps);
  }
  if (flags.distributed() && !flags.task.is_chief()) return OkStatus();  // the chief reports
  if (options.trace != nullptr) {
    RETURN_IF_ERROR(trace.WriteJson(Env::Real(), flags.trace_file));
    progress.Say(StrCat(flags.trace_file, ": ", trace.Describe()));
  }
  ASSIGN_OR_RETURN(const double accuracy, trainer.TestAccuracy(loop.session(), data.test));
  const std::string line = absl::StrFormat("test accuracy: %.4f\n", accuracy);
  std::fputs(line.c_str(), stdout);
  if (flags.checkpoint_dir.empty()) return OkStatus();
  return Env::Real().WriteFileAtomically(flags.checkpoint_dir + "/test_accuracy", line);
}

}  // namespace penstock::examples

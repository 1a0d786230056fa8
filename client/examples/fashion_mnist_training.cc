// SPDX-License-Identifier: Apache-2.0
#include "client/examples/fashion_mnist_training.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/chief_hook.h"
#include "client/device_setter.h"
#include "client/exactly_once.h"
#include "client/examples/all_reduce.h"
#include "client/examples/fashion_mnist_data.h"
#include "client/examples/fashion_mnist_model.h"
#include "client/examples/fashion_mnist_records.h"
#include "client/examples/task.h"
#include "client/optimizers.h"
#include "client/progress.h"
#include "client/replicate.h"
#include "client/run_iterators.h"
#include "client/saver.h"
#include "client/stop_signal.h"
#include "client/summary/evaluation.h"
#include "client/summary/summaries.h"
#include "client/summary/summary_hook.h"
#include "client/summary/tensorboard.h"
#include "client/sync/bounded_staleness.h"
#include "client/sync/staleness.h"
#include "client/sync/sync_replicas.h"
#include "client/training.h"
#include "core/base/log.h"

namespace penstock::examples {
namespace {

using client::Adam;
using client::Program;
using client::TrainingStep;

struct PictureBatch {
  Output images, labels;  // uint8[n,28,28] and uint8[n]
};

constexpr int64_t kTestBatch = 500;
constexpr int64_t kFirstTracedStep = 100;  // the step to trace: late enough that caches are filled

Output Fed(Program& program, const PartialShape& shape, string_view name) {
  return CallIn(program, "Placeholder", {}, {{"dtype", DType::kUint8}, {"shape", shape}}, name);
}
PictureBatch FedPictures(Program& program) {
  return {Fed(program, {-1, 28, 28}, "images"), Fed(program, {-1}, "labels")};
}

struct Trainer {
  Trainer(const Flags& flags, const std::string& target)
      : flags(flags),
        optimizer(flags.learning_rate),
        all_reduce(program, flags.training, flags.task, target) {}

  bool fed() const { return flags.input != "tfrecord"; }
  // Returns the tasks on which the steps of this task compute.
  std::vector<std::string> Towers() const {
    return flags.sync ? Workers(flags.task) : std::vector<std::string>{TaskName(flags.task)};
  }
  // Returns this task's share of the training.
  client::WorkerShare Share() const {
    if (flags.sync || !flags.distributed()) return {};
    return {.workers = static_cast<int>(Workers(flags.task).size()),
            .worker = WorkerIndex(flags.task)};
  }

  // Returns the pictures that tower `tower` trains on: inputs of the step that are fed, or records
  // that are read on the device where the tower computes.
  PictureBatch TowerInputs(int tower) {
    if (fed()) {
      const PictureBatch batch = FedPictures(program);
      step.inputs.push_back(batch.images);
      step.inputs.push_back(batch.labels);
      if (tower == 0) own_batch = batch;
      return batch;
    }
    ReadOptions read{.batch_size = flags.batch_size,
                     .seed = flags.seed * 1000 + flags.task.task + tower,
                     .share = Share()};
    if (flags.sync) read.share = {.workers = static_cast<int>(Towers().size()), .worker = tower};
    const auto pictures = ReadPictureBatches(program, Env::Real(), flags.data_dir, read);
    if (!pictures.ok()) {
      program.Fail(pictures.status());
      return FedPictures(program);
    }
    iterators.emplace_back(*pictures);
    const Outputs next = iterators.back().GetNext();
    taken.push_back(next[0]);
    if (tower == 0) own_batch = {next[0], next[1]};
    return {next[0], next[1]};
  }

  // Builds a step of all workers together, where each worker holds all variables.
  void BuildReplicaStep() {
    const PictureBatch batch = TowerInputs(0);
    const Measures measures = Measure(model(batch.images), batch.labels);
    client::CollectiveReplicas& replicas = all_reduce.replicas();
    const Output packed = Call("Pack", {Outputs{measures.loss, measures.accuracy}});
    const Outputs means = CallN("Unpack", {replicas.Average(packed)}, {{"num", 2}});
    const auto gradients = replicas.Average(optimizer.ComputeGradients(program, measures.loss));
    step.train = optimizer.ApplyGradients(program, gradients, program.GlobalStep());
    if (!program.status().ok()) return;
    step.measures = {{"loss", means[0]}, {"accuracy", means[1]}};
    all_reduce.AddAgree();
  }

  // Builds a step of this task alone, or of all workers together.
  void BuildStep() {
    if (all_reduce.used()) return BuildReplicaStep();
    const std::vector<std::string> devices = Towers();
    Outputs accuracies;
    const auto towers = BuildTowers(program, optimizer, devices, [&](int tower) {
      const PictureBatch batch = TowerInputs(tower);
      const Measures measures = Measure(model(batch.images), batch.labels);
      accuracies.push_back(measures.accuracy);
      return measures.loss;
    });
    step.measures = {{"loss", towers.loss},
                     {"accuracy", AddN(accuracies) / static_cast<double>(devices.size())}};
    if (sync) {
      step.train = sync->Apply(optimizer, towers.gradients);
      return;
    }
    // If several steps read records at the same time, the position cannot be resumed exactly.
    const bool counts_batches = !fed() || flags.deterministic;
    if (counts_batches && flags.concurrent_steps == 1) once.emplace(program, Share());
    step.once = once ? &*once : nullptr;
    step.train = once ? once->Apply(optimizer, towers.gradients)
                      : optimizer.ApplyGradients(program, towers.gradients, program.GlobalStep());
    if (flags.distributed() && !flags.sync && !once) {
      staleness.emplace(program, step.train);
      step.measures.emplace_back(client::Staleness::kMeasure, staleness->measure());
    }
    BoundStaleness();
  }

  // Makes the steps of this worker wait for slower workers, if --staleness_bound is given.
  void BoundStaleness() {
    if (!flags.staleness_bound.has_value()) return;
    client::BoundedStalenessOptions options{.bound = *flags.staleness_bound,
                                            .workers = static_cast<int>(Workers(flags.task).size()),
                                            .worker = WorkerIndex(flags.task),
                                            .task = TaskName(flags.task)};
    if (flags.staleness_timeout) options.timeout_seconds = *flags.staleness_timeout;
    bounded.emplace(program, options);
    step.train = bounded->Apply(step.train);
  }

  // Returns the hook that initialises the iterators.
  client::RunIterators RunInput() {
    if (!once) return client::RunIterators(iterators);
    if (fed()) return client::RunIterators({}, {}, step.once);
    return client::RunIterators(iterators, program.Group(taken, "taken"), step.once);
  }

  Status Build() {
    const client::ReplicaDevices devices{.ps_tasks = flags.num_tasks("ps"),
                                         .worker_device = TaskName(flags.task),
                                         .balance = client::Balance::kBytes};
    if (flags.replicas()) {
      const auto workers = static_cast<int>(Workers(flags.task).size());
      const auto needed = static_cast<int>(flags.replicas_to_aggregate);
      sync.emplace(program, client::SyncReplicasOptions{
                                .replicas_to_aggregate = needed == 0 ? workers : needed,
                                .replicas = workers,
                                .replica = WorkerIndex(flags.task)});
    }
    const auto scope = program.DeviceFunctionScope(
        all_reduce.used() ? all_reduce.replicas().Devices() : client::ReplicaDeviceSetter(devices));
    const int ps_tasks = all_reduce.used() ? 1 : devices.ps_tasks;
    ASSIGN_OR_RETURN(model, MakeModel(program, flags.model, flags.seed, ps_tasks));
    BuildStep();
    test = FedPictures(program);
    tested = Measure(model(test.images), test.labels);
    AddSummaries();
    return program.status();
  }

  // Adds summaries for the event files, in addition to loss and accuracy.
  void AddSummaries() {
    if (flags.summary_dir.empty() || !(flags.is_chief() || all_reduce.elastic())) return;
    client::Summaries summaries(program);
    for (const client::Variable& variable : program.trainable()) {
      summaries.AddHistogram(variable.name(), variable.Read());
    }
    const Output pictures = own_batch.images;
    summaries.AddImages(
        "pictures", Call("ExpandDims", {pictures, Constant(program, Tensor::Scalar<int32_t>(-1))}));
    summary = summaries.Merged();
  }

  // Returns the mean "accuracy" and "loss" on `pictures`.
  StatusOr<client::Measures> Test(client::Session& session, const Pictures& pictures) const {
    const auto batch = [&](int64_t number) -> StatusOr<std::vector<Tensor>> {
      const int64_t begin = number * kTestBatch;
      if (begin >= pictures.size()) return OutOfRange("all pictures were seen");
      const Pictures part = pictures.Slice(begin, std::min(begin + kTestBatch, pictures.size()));
      return std::vector<Tensor>{part.images, part.labels};
    };
    return client::EvaluateMeans(
        session, {.inputs = {test.images, test.labels},
                  .measures = {{"accuracy", tested.accuracy}, {"loss", tested.loss}},
                  .batch = batch});
  }

  const Flags& flags;
  Program program;
  Adam optimizer;
  std::vector<client::Iterator> iterators;  // iterators over the towers' records
  Outputs taken;                            // pictures that a step takes from the iterators
  std::optional<client::ExactlyOnce> once;
  std::optional<client::SyncReplicas> sync;
  std::optional<client::Staleness>
      staleness;  // set if each worker runs its steps independently of the others
  std::optional<client::BoundedStaleness> bounded;
  AllReduce all_reduce;
  Model model;
  TrainingStep step;
  PictureBatch test;
  Measures tested;
  PictureBatch own_batch;  // inputs of the first tower of this task
  Output summary;
};

client::TrainingOptions LoopOptions(const Flags& flags, const std::string& target) {
  client::TrainingOptions options{.target = target,
                                  .is_chief = flags.is_chief(),
                                  .chief = ChiefName(flags.task),
                                  .checkpoint_dir = flags.checkpoint_dir,
                                  .save_every_steps = flags.save_every_steps,
                                  .save_every_seconds = flags.save_every_seconds,
                                  .max_failed_saves_in_a_row = flags.max_failed_saves,
                                  .deterministic = flags.deterministic,
                                  .max_steps = flags.steps,
                                  .concurrent_steps = flags.concurrent_steps,
                                  .wait_seconds = flags.wait_seconds};
  options.session.bfloat16_transfers = flags.bfloat16_transfers;
  options.session.memory_limit = flags.memory_limit;
  // An asynchronous worker needs only the parameter servers. With this filter it neither waits for
  // other workers nor fails if they are lost.
  if (flags.distributed() && !flags.sync && !flags.all_reduce()) {
    options.session.device_filters = {"/job:ps", TaskName(flags.task)};
  }
  return options;
}

// The pictures of a training, and the batches that are fed to its steps. A step trains on one batch
// per tower. With --strategy=allreduce each worker has one of the towers.
struct TrainingInput {
  TrainingInput(const Flags& flags, const Trainer& trainer)
      : own_towers(static_cast<int64_t>(trainer.Towers().size())),
        towers(flags.all_reduce() ? static_cast<int64_t>(Workers(flags.task).size()) : own_towers) {
  }

  // Reads the pictures. If batches are fed to the trainer, makes its step take them from this
  // object, which must outlive the training.
  Status Open(const Flags& flags, Trainer& trainer) {
    if (!trainer.fed()) {
      ASSIGN_OR_RETURN(data.test, ReadTestRecords(Env::Real(), flags.data_dir));
      return OkStatus();
    }
    ASSIGN_OR_RETURN(data, ReadFashionMnist(Env::Real(), flags.data_dir));
    if (flags.batch_size > data.train.size()) {
      return InvalidArgument("--batch_size=", flags.batch_size, ": there are only ",
                             data.train.size(), " pictures");
    }
    // Each worker sees the pictures in its own order. But workers that take steps together share
    // one order, so that a step equals the step of one big batch.
    const int64_t order = flags.all_reduce() ? 0 : flags.task.task;
    batches.emplace(data.train, flags.batch_size, flags.seed * 1000 + order);
    trainer.step.next_batch = [this, &trainer](int64_t step) {
      return FedBatches(trainer.all_reduce.used() ? trainer.all_reduce.BatchNumber(step)
                                                  : step * own_towers);
    };
    return OkStatus();
  }

  // Returns the batches from number `first` on, one for each of this task's towers, as feeds.
  StatusOr<std::vector<Tensor>> FedBatches(int64_t first) {
    std::vector<Tensor> fed;
    for (int64_t number = first; number < first + own_towers; ++number) {
      Pictures batch = batches->Get(number);
      fed.push_back(std::move(batch.images));
      fed.push_back(std::move(batch.labels));
    }
    return fed;
  }

  const int64_t own_towers, towers;
  FashionMnist data;
  std::optional<Batches> batches;
};

std::string EvalFolder(const Flags& flags) { return flags.summary_dir + "/eval"; }

// The event files of a training, and the hooks that write them. Empty on tasks that write none.
struct EventFiles {
  Status Open(const Flags& flags, const Trainer& trainer, const Pictures& test) {
    if (trainer.all_reduce.elastic()) {
      OpenAsChief(flags, trainer, test);
      return OkStatus();
    }
    if (!flags.is_chief()) return OkStatus();
    if (!flags.summary_dir.empty()) {
      ASSIGN_OR_RETURN(summaries, MakeSummaries(flags, trainer));
    }
    if (flags.eval_steps > 0) {
      ASSIGN_OR_RETURN(evaluation, MakeEvaluation(flags, trainer, test));
    }
    return OkStatus();
  }
  void AddTo(client::TrainingLoop& loop) {
    if (summaries != nullptr) loop.AddHook(summaries.get());
    if (evaluation != nullptr) loop.AddHook(evaluation.get());
  }

  // In a group that changes, each worker opens its files when it becomes chief.
  void OpenAsChief(const Flags& flags, const Trainer& trainer, const Pictures& test) {
    const auto is_chief = [&trainer] { return trainer.all_reduce.is_chief(); };
    if (!flags.summary_dir.empty()) {
      summaries = std::make_unique<client::ChiefHook>(
          is_chief, [this, &flags, &trainer] { return MakeSummaries(flags, trainer); });
    }
    if (flags.eval_steps > 0) {
      evaluation = std::make_unique<client::ChiefHook>(is_chief, [this, &flags, &trainer, &test] {
        return MakeEvaluation(flags, trainer, test);
      });
    }
  }

  using Hook = std::unique_ptr<client::TrainingHook>;
  StatusOr<Hook> MakeSummaries(const Flags& flags, const Trainer& trainer) {
    ASSIGN_OR_RETURN(writer, client::SummaryWriter::Create(flags.summary_dir));
    return Hook(std::make_unique<client::SummaryHook>(
        *writer, trainer.program,
        client::SummaryHookOptions{.every_steps = flags.summary_steps,
                                   .summary = trainer.summary}));
  }
  StatusOr<Hook> MakeEvaluation(const Flags& flags, const Trainer& trainer, const Pictures& test) {
    if (!flags.summary_dir.empty()) {
      ASSIGN_OR_RETURN(eval_writer, client::SummaryWriter::Create(EvalFolder(flags)));
    }
    return Hook(std::make_unique<client::EvaluationHook>(
        [&trainer, &test](client::Session& session) { return trainer.Test(session, test); },
        client::EvaluationHookOptions{.every_steps = flags.eval_steps,
                                      .writer = eval_writer.get()}));
  }

  std::unique_ptr<client::SummaryWriter> writer, eval_writer;
  Hook summaries, evaluation;  // null: there is none
};

// Starts TensorBoard. Returns null if the flags do not ask for it, or it is not installed.
std::unique_ptr<client::TensorBoard> ShowInTensorBoard(const Flags& flags) {
  if (!flags.tensorboard || !flags.is_chief()) return nullptr;
  auto shown = client::TensorBoard::Start(flags.summary_dir);
  if (!shown.ok()) {
    Log({.level = LogLevel::kWarning,
         .event = "tensorboard",
         .text = StrCat("--tensorboard: ", shown.status().message())});
    return nullptr;
  }
  Log({.event = "tensorboard",
       .text = StrCat("TensorBoard shows ", flags.summary_dir, " at ", (*shown)->url()),
       .fields = {{"url", (*shown)->url()}}});
  return *std::move(shown);
}

StatusOr<Pictures> TestPictures(const Flags& flags) {
  if (flags.input == "tfrecord") return ReadTestRecords(Env::Real(), flags.data_dir);
  ASSIGN_OR_RETURN(FashionMnist data, ReadFashionMnist(Env::Real(), flags.data_dir));
  return std::move(data.test);
}

// Tests the checkpoints of a training that runs in other processes.
Status EvaluateFashionMnist(const Flags& flags) {
  Trainer trainer(flags, "");
  RETURN_IF_ERROR(trainer.Build());
  ASSIGN_OR_RETURN(const Pictures test, TestPictures(flags));
  client::Saver saver(trainer.program);
  const Output global_step = trainer.program.GlobalStep().Read();
  ASSIGN_OR_RETURN(const auto session, client::Session::New(trainer.program));
  std::unique_ptr<client::SummaryWriter> writer;
  if (!flags.summary_dir.empty()) {
    ASSIGN_OR_RETURN(writer, client::SummaryWriter::Create(EvalFolder(flags)));
  }
  client::StopSignal stop(/*grace_seconds=*/0);
  const auto tensorboard = ShowInTensorBoard(flags);
  return client::EvaluateCheckpoints(saver, *session, global_step,
                                     [&](client::Session& s) { return trainer.Test(s, test); },
                                     {.checkpoint_dir = flags.checkpoint_dir,
                                      .wait_seconds = flags.wait_seconds,
                                      .last_step = flags.steps,
                                      .writer = writer.get(),
                                      .cancellation = &stop.cancellation()});
}

}  // namespace

Status TrainFashionMnist(const Flags& flags, const std::string& target) {
  if (flags.evaluate) return EvaluateFashionMnist(flags);
  Trainer trainer(flags, target);
  RETURN_IF_ERROR(trainer.Build());
  TrainingInput input(flags, trainer);
  RETURN_IF_ERROR(input.Open(flags, trainer));
  client::Progress progress({.label = TaskName(flags.task),
                             .max_steps = flags.steps,
                             .examples_per_step = flags.batch_size * input.towers});
  client::ShowProgress show(progress);
  client::TrainingOptions options = LoopOptions(flags, target);
  if (trainer.all_reduce.used()) trainer.all_reduce.SetOptions(&options);
  client::StepTrace trace({.first_step = std::min(kFirstTracedStep, flags.steps / 2)});
  if (options.is_chief && !flags.trace_file.empty()) options.trace = &trace;
  client::TrainingLoop loop(trainer.program, trainer.step, options);
  loop.AddHook(&show);
  client::RunIterators run_input = trainer.RunInput();
  loop.AddHook(&run_input);
  if (trainer.sync) loop.AddHook(&*trainer.sync);
  if (trainer.staleness) loop.AddHook(&*trainer.staleness);
  if (trainer.bounded) loop.AddHook(&*trainer.bounded);
  EventFiles watching;
  RETURN_IF_ERROR(watching.Open(flags, trainer, input.data.test));
  if (trainer.staleness && watching.writer != nullptr) {
    trainer.staleness->WriteHistograms(*watching.writer, flags.summary_steps);
  }
  watching.AddTo(loop);
  const auto tensorboard = ShowInTensorBoard(flags);
  RETURN_IF_ERROR(loop.Run());
  if (trainer.staleness) progress.Say(trainer.staleness->Describe());
  if (trainer.bounded) progress.Say(trainer.bounded->Describe());
  if (loop.global_step() < flags.steps) {
    return Cancelled("told to end at step ", loop.global_step(), " of ", flags.steps);
  }
  const bool chief = trainer.all_reduce.used() ? trainer.all_reduce.is_chief() : flags.is_chief();
  if (options.trace != nullptr) {
    RETURN_IF_ERROR(trace.WriteJson(Env::Real(), flags.trace_file));
    progress.Say(StrCat(flags.trace_file, ": ", trace.Describe()));
  }
  if (!chief) return OkStatus();  // the chief reports
  ASSIGN_OR_RETURN(const client::Measures tested, trainer.Test(loop.session(), input.data.test));
  const std::string line = absl::StrFormat("test accuracy: %.4f\n", tested.at("accuracy"));
  std::fputs(line.c_str(), stdout);
  if (flags.checkpoint_dir.empty()) return OkStatus();
  return Env::Real().WriteFileAtomically(flags.checkpoint_dir + "/test_accuracy", line);
}

}  // namespace penstock::examples

// SPDX-License-Identifier: Apache-2.0
//
// A training whose variables count how often it has seen each record, for tests that kill and
// resume trainings. It runs in one process, or as a task of a cluster. Records are the numbers 0,
// ..., --records - 1, in TFRecord files that are divided among the workers. Each worker reads its
// files in a new order in each epoch, and draws records from a shuffling queue; with --dataset,
// from a shuffled dataset.
//
// Prints "step N took SUM" after each step. At the end the chief waits until all workers have read
// all of their records. Then it prints "seen" and the counts, and "batches" and the number of
// batches.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "client/dataset.h"
#include "client/device_setter.h"
#include "client/exactly_once.h"
#include "client/examples/task.h"
#include "client/input.h"
#include "client/optimizers.h"
#include "client/replicate.h"
#include "client/run_iterators.h"
#include "client/run_queue_runners.h"
#include "client/training.h"
#include "core/op/gradient.h"

namespace penstock::examples {
namespace {

using client::Variable;

constexpr char kProgram[] = "count_records";
constexpr double kWaitSeconds = 60;
constexpr int32_t kBatch = 8;

struct Flags {
  TaskConfig task;
  std::string checkpoint_dir;
  int64_t epochs = 1, records = 1, step_millis = 0;
  bool sync = false, dataset = false;
  std::vector<std::string> files;
};

class SayAndSleep final : public client::TrainingHook {
 public:
  explicit SayAndSleep(int64_t millis) : millis_(millis) {}
  Status AfterStep(const client::StepResult& result, bool*) override {
    std::printf("step %lld took %.0f\n", static_cast<long long>(result.global_step),
                result.measures.at("sum"));
    std::fflush(stdout);
    Env::Real().SleepForNanos(millis_ * 1'000'000);
    return OkStatus();
  }

 private:
  const int64_t millis_;
};

// Returns this worker's share of the files.
std::vector<std::string> OwnFiles(const Flags& flags, const client::WorkerShare& share) {
  std::vector<std::string> own;
  for (size_t i = share.worker; i < flags.files.size(); i += share.workers) {
    own.push_back(flags.files[i]);
  }
  return own;
}

Output NumberOf(Output record) {
  return Call("StringToNumber", {record}, {{"out_type", DType::kInt32}});
}

// Returns the next batch of the numbers in `own` files, from queues.
Output QueueBatch(client::QueueRunners& runners, const Flags& flags,
                  const std::vector<std::string>& own) {
  const Output files = StringInputProducer(runners, own, {.num_epochs = flags.epochs, .seed = 5});
  const Output reader = CallIn(runners.program(), "TFRecordReaderV2", {});
  const Output record = client::ReadRecord(reader, files).value;
  return ShuffleBatch(runners, {NumberOf(record)}, kBatch,
                      {.capacity = 40,
                       .min_after_dequeue = 20,
                       .seed = 9,
                       .allow_smaller_final_batch = true,
                       .repeatable = true})[0];
}

// Returns the batches of the numbers in `own` files, as a dataset.
client::Dataset BatchDataset(client::Program& program, const Flags& flags,
                             const std::vector<std::string>& own) {
  const Output files = Constant(program, Tensor::Vector<std::string>(own));
  return client::Dataset::TensorSlices(program, {files})
      .Shuffle(static_cast<int64_t>(own.size()), 5)
      .FlatMap([&](const Outputs& f) { return client::Dataset::TFRecords(program, f[0]); })
      .Shuffle(40, 9)
      .Repeat(flags.epochs)
      .Batch(kBatch)
      .Map([](const Outputs& records) { return Outputs{NumberOf(records[0])}; })
      .Prefetch();
}

Status SayCounts(client::Session& session, const Variable& seen, const Variable& batches,
                 const Flags& flags) {
  const int64_t deadline = Env::Real().NowNanos() + static_cast<int64_t>(kWaitSeconds * 1e9);
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> values, session.Run({seen, batches}));
    const auto counts = values[0].flat<float>();
    const double seen_so_far = std::min(std::accumulate(counts.begin(), counts.end(), 0.0),
                                        static_cast<double>(values[1].scalar<float>()) * kBatch);
    if (seen_so_far < static_cast<double>(flags.epochs * flags.records) &&
        Env::Real().NowNanos() < deadline) {
      Env::Real().SleepForNanos(100'000'000);
      continue;
    }
    std::printf("seen");
    for (const float count : counts) std::printf(" %.0f", count);
    std::printf("\nbatches %.0f\n", values[1].scalar<float>());
    return OkStatus();
  }
}

Status Count(const Flags& flags, const std::string& target) {
  client::Program program;
  const std::string self = TaskName(flags.task);
  const auto scope = program.DeviceFunctionScope(
      client::ReplicaDeviceSetter({.ps_tasks = NumTasks(flags.task, "ps"), .worker_device = self}));
  const Variable seen(program, "seen", {flags.records}, client::Zeros());
  const Variable batches(program, "batches", {}, client::Zeros());
  const Output zero = Constant(program, Tensor::Scalar<int32_t>(0));
  const int workers = std::max(1, NumTasks(flags.task, "worker"));
  const std::vector<std::string> devices =
      flags.sync ? Workers(flags.task) : std::vector<std::string>{self};
  client::QueueRunners runners(program);
  std::vector<client::Iterator> iterators;
  Outputs taken, sums;
  client::GradientDescent optimizer(1);
  const auto towers = client::BuildTowers(program, optimizer, devices, [&](int tower) {
    const int worker = flags.task.task + tower;
    const std::vector<std::string> own = OwnFiles(flags, {.workers = workers, .worker = worker});
    if (flags.dataset) {
      iterators.emplace_back(BatchDataset(program, flags, own));
      taken.push_back(iterators.back().GetNext()[0]);
    } else {
      taken.push_back(QueueBatch(runners, flags, own));
    }
    sums.push_back(Sum(Cast(taken.back(), DType::kFloat), zero));
    // The gradient makes each row of the batch, and the number of batches, grow by one. The factor
    // undoes the averaging of gradients.
    const Output loss = -Sum(Gather(seen, taken.back(), zero), zero) - batches;
    return loss * static_cast<double>(devices.size());
  });
  const client::WorkerShare share{.workers = workers, .worker = flags.task.task};
  client::ExactlyOnce once(program, flags.sync ? client::WorkerShare() : share);
  const Output train = once.Apply(optimizer, towers.gradients);
  const Output batch = program.Group(taken, "taken");
  RETURN_IF_ERROR(program.status());

  client::TrainingOptions options{.target = target,
                                  .is_chief = self.empty() || flags.task.is_chief(),
                                  .chief = ChiefName(flags.task),
                                  .checkpoint_dir = flags.checkpoint_dir,
                                  .save_every_steps = 4,
                                  .save_every_seconds = 0,
                                  .retry_seconds = 0.1};
  if (!self.empty() && !flags.sync) options.session.device_filters = {"/job:ps", self};
  client::TrainingLoop loop(
      program, {.train = train, .measures = {{"sum", AddN(sums)}}, .once = &once}, options);
  client::RunQueueRunners queues(runners, batch, &once);
  client::RunIterators datasets(iterators, batch, &once);
  client::TrainingHook* input = &queues;
  if (flags.dataset) input = &datasets;
  SayAndSleep say(flags.step_millis);
  loop.AddHook(input);
  loop.AddHook(&say);
  RETURN_IF_ERROR(loop.Run());
  return options.is_chief ? SayCounts(loop.session(), seen, batches, flags) : OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ClusterFlags cluster;
  CLI::App app("Counts records.");
  AddClusterFlags(app, &cluster);
  app.add_option("--checkpoint_dir", flags.checkpoint_dir)->required();
  app.add_option("--epochs", flags.epochs);
  app.add_option("--records", flags.records);
  app.add_option("--step_millis", flags.step_millis, "between steps");
  app.add_flag("--sync", flags.sync);
  app.add_flag("--dataset", flags.dataset);
  app.add_option("files", flags.files)->required();
  CLI11_PARSE(app, argc, argv);
  StatusOr<TaskConfig> task = FindTask(app, cluster);
  if (!task.ok()) return Report(kProgram, task.status(), kMistake);
  flags.task = *std::move(task);
  return RunTask({.program = kProgram, .task = flags.task, .chief_drives = flags.sync},
                 [&](const std::string& target) { return Count(flags, target); });
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }

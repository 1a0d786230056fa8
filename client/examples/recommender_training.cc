// SPDX-License-Identifier: Apache-2.0
#include "client/examples/recommender_training.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "client/device_setter.h"
#include "client/examples/all_reduce.h"
#include "client/examples/recommender_data.h"
#include "client/examples/recommender_model.h"
#include "client/examples/task.h"
#include "client/losses/losses.h"
#include "client/metrics/metrics.h"
#include "client/progress.h"
#include "client/training.h"
#include "core/op/gradient.h"

namespace penstock::examples {
namespace {

bool IsChief(const RecommenderFlags& flags) {
  return flags.task.cluster.empty() || flags.task.is_chief();
}

client::TrainingOptions LoopOptions(const RecommenderFlags& flags, const std::string& target) {
  client::TrainingOptions options{.target = target,
                                  .is_chief = IsChief(flags),
                                  .chief = ChiefName(flags.task),
                                  .checkpoint_dir = flags.checkpoint_dir,
                                  .save_every_seconds = flags.save_every_seconds,
                                  .incremental_saves = flags.incremental_saves,
                                  .max_failed_saves_in_a_row = flags.max_failed_saves,
                                  .max_steps = flags.steps,
                                  .wait_seconds = flags.wait_seconds};
  options.session.placement = flags.placement;
  // Without automatic placement, workers need only the parameter servers.
  if (!flags.task.cluster.empty() && flags.placement != "auto") {
    options.session.device_filters = {"/job:ps", TaskName(flags.task)};
  }
  return options;
}

GraphBuilder::DeviceFunction DevicesOf(const RecommenderFlags& flags) {
  if (flags.placement == "auto") return [](const Graph::NodeSpec& node) { return node.device; };
  return client::ReplicaDeviceSetter({.ps_tasks = NumTasks(flags.task, "ps"),
                                      .worker_device = TaskName(flags.task),
                                      .balance = client::Balance::kBytes});
}

StatusOr<double> TestAuc(client::Session& session, const client::Metric& auc,
                         const Recommender::Inputs& inputs, const Ratings& ratings,
                         size_t batch_size) {
  RETURN_IF_ERROR(session.Execute(auc.reset));
  for (size_t begin = 0; begin < ratings.test.size(); begin += batch_size) {
    const size_t end = std::min(begin + batch_size, ratings.test.size());
    const std::vector<Tensor> tensors = MakeBatch(ratings, ratings.test, begin, end).tensors();
    const Outputs fed = inputs.all();
    std::vector<client::Feed> feeds;
    for (size_t i = 0; i < fed.size(); ++i) feeds.push_back({fed[i], tensors[i]});
    RETURN_IF_ERROR(session.Execute(auc.update, feeds));
  }
  ASSIGN_OR_RETURN(const Tensor value, session.Fetch(auc.value));
  return value.scalar<double>();
}

}  // namespace

Status TrainRecommender(const RecommenderFlags& flags, const std::string& target) {
  ASSIGN_OR_RETURN(const Ratings ratings, ReadRatings(Env::Real(), flags.data_dir));
  const std::string self = TaskName(flags.task);
  const int ps_tasks = NumTasks(flags.task, "ps");
  client::Program program;
  AllReduce all_reduce(program, flags.training, flags.task, target);
  const auto scope = program.DeviceFunctionScope(all_reduce.used() ? all_reduce.replicas().Devices()
                                                                   : DevicesOf(flags));
  const Recommender model(program,
                          {.users = ratings.users,
                           .films = ratings.films(),
                           .genres = ratings.num_genres,
                           .units = flags.units,
                           .parts = std::max(1, ps_tasks),
                           .dynamic_tables = flags.table == "dynamic",
                           .max_rows = flags.max_rows,
                           .spill_directory = flags.spill_directory},
                          flags.learning_rate);
  const Recommender::Inputs inputs = Recommender::MakeInputs(program);
  const Output logits = model.Logits(inputs);
  const Output loss = client::SigmoidCrossEntropy(inputs.liked, logits);
  // The loss shown is the mean over all replicas, which must be averaged before the gradients.
  const Output shown = all_reduce.used() ? all_reduce.replicas().Average(loss) : loss;
  const Output train = all_reduce.used()
                           ? model.Train(loss,
                                         [&](const auto& gradients) {
                                           return all_reduce.replicas().Average(gradients);
                                         })
                           : model.Train(loss);
  const client::Metric auc = client::Auc(program, "auc", inputs.liked, Sigmoid(logits));
  if (all_reduce.used()) all_reduce.AddAgree();
  RETURN_IF_ERROR(program.status());

  const client::TrainingStep step{
      .train = train,
      .inputs = inputs.all(),
      .next_batch =
          [&](int64_t number) {
            // Each batch number is used by one replica only.
            const bool together = all_reduce.used();
            return DrawBatch(ratings, flags.batch_size,
                             together ? all_reduce.BatchNumber(number) : number,
                             together ? 0 : flags.task.task)
                .tensors();
          },
      .measures = {{"loss", shown}}};
  const int64_t towers = all_reduce.used() ? static_cast<int64_t>(Workers(flags.task).size()) : 1;
  client::Progress progress(
      {.label = self, .max_steps = flags.steps, .examples_per_step = flags.batch_size * towers});
  client::ShowProgress show(progress);
  client::TrainingOptions options = LoopOptions(flags, target);
  if (all_reduce.used()) all_reduce.SetOptions(&options);
  client::TrainingLoop loop(program, step, options);
  loop.AddHook(&show);
  RETURN_IF_ERROR(loop.Run());
  if (loop.global_step() < flags.steps) {
    return Cancelled("told to end at step ", loop.global_step(), " of ", flags.steps);
  }
  if (!(all_reduce.used() ? all_reduce.is_chief() : IsChief(flags))) return OkStatus();
  ASSIGN_OR_RETURN(const double value,
                   TestAuc(loop.session(), auc, inputs, ratings, flags.batch_size));
  std::printf("test AUC: %.3f\n", value);
  return OkStatus();
}

}  // namespace penstock::examples

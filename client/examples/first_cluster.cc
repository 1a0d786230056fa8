// SPDX-License-Identifier: Apache-2.0
//
// The program of docs/own-program.md: fits a line on a cluster of ps and workers, with checkpoints.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "client/device_setter.h"
#include "client/examples/task.h"
#include "client/ops/ops.h"
#include "client/optimizers.h"
#include "client/training.h"

using namespace penstock;            // NOLINT
using namespace penstock::client;    // NOLINT
using namespace penstock::examples;  // NOLINT

// Returns two points (a, b) and their values 3 a - b. A batch depends only on its number, so a
// training that is resumed from a checkpoint continues with the next batch.
std::vector<Tensor> Batch(int64_t number) {
  const float a = static_cast<float>(number % 7) / 7, b = static_cast<float>(number % 5) / 5;
  return {Tensor::Of<float>({2, 2}, {a, b, b, a}),
          Tensor::Of<float>({2, 1}, {3 * a - b, 3 * b - a})};
}

Status Train(const TaskConfig& task, const std::string& target, const std::string& folder) {
  Program program;
  // Variables go to the ps, everything else to this worker.
  const auto placed = program.DeviceFunctionScope(
      ReplicaDeviceSetter({.ps_tasks = NumTasks(task, "ps"), .worker_device = TaskName(task)}));
  const Output x = ops::Placeholder(program, DType::kFloat, {.shape = {-1, 2}});
  const Output y = ops::Placeholder(program, DType::kFloat, {.shape = {-1, 1}});
  const Variable w(program, "w", {2, 1}, GlorotUniform());
  const Output both_axes = Constant(program, Tensor::Vector<int32_t>({0, 1}));
  const Output loss = ops::Mean(ops::SquaredDifference(ops::MatMul(x, w), y), both_axes);
  const Output train = GradientDescent(0.2).Minimize(program, loss);

  SessionOptions session;  // the session uses the ps and this worker, not the other workers
  if (!task.cluster.empty()) session.device_filters = {"/job:ps", TaskName(task)};
  TrainingLoop loop(program,
                    {.train = train,
                     .inputs = {x, y},
                     .next_batch = [](int64_t step) { return Batch(step); },
                     .measures = {{"loss", loss}}},
                    {.target = target,
                     .session = session,
                     .is_chief = task.cluster.empty() || task.is_chief(),
                     .chief = ChiefName(task),
                     .checkpoint_dir = folder,
                     .max_steps = 2000});
  RETURN_IF_ERROR(loop.Run());
  ASSIGN_OR_RETURN(const Tensor value, loop.session().Fetch(w));
  std::printf("step %lld: w = %s\n", static_cast<long long>(loop.global_step()),
              value.ToString().c_str());  // about 3 and -1
  return OkStatus();
}

int main(int argc, char** argv) {
  CLI::App app("Fits a line, in this process or as one task of a cluster.");
  ClusterFlags flags;
  std::string folder;
  AddClusterFlags(app, &flags);
  app.add_option("--checkpoint_dir", folder, "where the chief saves; nothing is saved without it");
  CLI11_PARSE(app, argc, argv);
  const StatusOr<TaskConfig> task = FindTask(app, flags);
  if (!task.ok()) return Report("first_cluster", task.status(), kMistake);
  return RunTask({.program = "first_cluster", .task = *task},
                 [&](const std::string& target) { return Train(*task, target, folder); });
}

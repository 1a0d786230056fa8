// SPDX-License-Identifier: Apache-2.0
//
// Trains on two parameter servers and two workers, with their masters and clients, in one thread
// with a simulated clock and network. Tests that a seed repeats a run exactly, and that the seed
// does not change the result of synchronous training.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/device_setter.h"
#include "client/optimizers.h"
#include "client/replicate.h"
#include "client/training.h"
#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/op/gradient.h"
#include "distributed/sim/sim_cluster.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr int kWorkers = 2, kRows = 4, kSteps = 100;

std::string WorkerName(int index) { return StrCat("/job:worker/task:", index); }

// A batch of y = x . (2, -3) + 0.5, which the model should learn.
struct Batch {
  Batch(int64_t step, int worker) {
    std::vector<float> rows, results;
    for (int i = 0; i < kRows; ++i) {
      const double at = static_cast<double>(step * kWorkers + worker) * kRows + i;
      const auto a = static_cast<float>(std::sin(1.7 * at)), b = static_cast<float>(std::cos(at));
      rows.insert(rows.end(), {a, b});
      results.push_back(2 * a - 3 * b + 0.5f);
    }
    x = Tensor::Of<float>({kRows, 2}, rows);
    y = Tensor::Of<float>({kRows, 1}, results);
  }
  Tensor x, y;
};

struct Model {
  explicit Model(Program& program)
      : w(program, "w", {2, 1}, Zeros()), b(program, "b", {}, Zeros()) {}
  Output Loss(Output x, Output y) const {
    return Mean(Square(MatMul(x, w) + b - y), Constant(*x.sink, Tensor::Vector<int32_t>({0, 1})));
  }
  Variable w, b;
};

class LogSteps final : public TrainingHook {
 public:
  LogSteps(SimNetwork& network, std::string client, std::vector<std::string>& steps)
      : network_(network), client_(std::move(client)), steps_(steps) {}
  Status AfterStep(const StepResult& result, bool* stop) override {
    steps_.push_back(absl::StrFormat("%s: step %d, loss %a", client_, result.global_step,
                                     result.measures.at("loss")));
    network_.Log(steps_.back());
    return OkStatus();
  }

 private:
  SimNetwork& network_;
  const std::string client_;
  std::vector<std::string>& steps_;
};

// A simulated cluster, and the results of training on it.
struct SimulatedTrainings {
  explicit SimulatedTrainings(uint64_t seed)
      : scheduler({.seed = seed}), env(scheduler, Env::Real()) {}

  // Trains with one client that runs the steps of both workers: each step uses the batches of both.
  void TrainTogether(SimCluster& cluster) {
    Program program;
    const auto devices = program.DeviceFunctionScope(
        ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = WorkerName(0)}));
    const Model model(program);
    GradientDescent optimizer(0.1);
    Outputs inputs;
    for (int i = 0; i < 2 * kWorkers; ++i) inputs.push_back(Input(program));
    std::vector<std::string> workers;
    for (int i = 0; i < kWorkers; ++i) workers.push_back(WorkerName(i));
    const Towers towers = BuildTowers(program, optimizer, workers, [&](int i) {
      return model.Loss(inputs[2 * i], inputs[2 * i + 1]);
    });
    const Output train = optimizer.ApplyGradients(program, towers.gradients, program.GlobalStep());
    const auto next_batch = [](int64_t step) -> StatusOr<std::vector<Tensor>> {
      std::vector<Tensor> tensors;
      for (int i = 0; i < kWorkers; ++i) {
        const Batch batch(step, i);
        tensors.insert(tensors.end(), {batch.x, batch.y});
      }
      return tensors;
    };
    RunLoop(cluster, program, model, 0,
            {.train = train,
             .inputs = inputs,
             .next_batch = next_batch,
             .measures = {{"loss", towers.loss}}});
  }

  // Trains asynchronously as the client of one worker.
  void TrainAlone(SimCluster& cluster, int worker) {
    Program program;
    const auto devices = program.DeviceFunctionScope(
        ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = WorkerName(worker)}));
    const Model model(program);
    const Outputs inputs = {Input(program), Input(program)};
    const Output loss = model.Loss(inputs[0], inputs[1]);
    const Output train = GradientDescent(0.1).Minimize(program, loss);
    const auto next_batch = [worker](int64_t step) -> StatusOr<std::vector<Tensor>> {
      const Batch batch(step, worker);
      return std::vector<Tensor>{batch.x, batch.y};
    };
    RunLoop(
        cluster, program, model, worker,
        {.train = train, .inputs = inputs, .next_batch = next_batch, .measures = {{"loss", loss}}});
  }

  static Output Input(Program& program) {
    return CallIn(program, "Placeholder", {},
                  {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
  }

  void RunLoop(SimCluster& cluster, Program& program, const Model& model, int worker,
               const TrainingStep& step) {
    const std::string client = StrCat("client-", worker);
    TrainingOptions options{.is_chief = worker == 0, .max_steps = kSteps, .stop_on_signals = false};
    options.new_session = [&] { return cluster.NewSession(client, "worker", worker); };
    options.say = [&](const std::string& line) {
      cluster.network().Log(StrCat(client, ": ", line));
    };
    // short, because a step takes some milliseconds, and both workers should start early
    options.retry_seconds = 0.001;
    options.env = &env;
    options.scheduler = &scheduler;
    TrainingLoop loop(program, step, options);
    LogSteps log_steps(cluster.network(), client, steps);
    loop.AddHook(&log_steps);
    const Status trained = loop.Run();
    ASSERT_EQ(trained, OkStatus());
    EXPECT_GE(loop.global_step(), kSteps);
    if (worker != 0) return;
    const auto values = loop.session().Run({model.w, model.b});
    ASSERT_EQ(values.status(), OkStatus());
    weights = {(*values)[0].flat<float>()[0], (*values)[0].flat<float>()[1],
               (*values)[1].scalar<float>()};
  }

  void Run(bool together) {
    const Status ran = scheduler.Run([&] {
      SimCluster cluster(scheduler, env, {{"ps", 2}, {"worker", kWorkers}});
      std::vector<std::unique_ptr<Thread>> clients;
      for (int i = 0; i < (together ? 1 : kWorkers); ++i) {
        clients.push_back(scheduler.StartThread(StrCat("client-", i), [&, i] {
          together ? TrainTogether(cluster) : TrainAlone(cluster, i);
        }));
      }
      clients.clear();
      log = cluster.network().log();
    });
    EXPECT_EQ(ran, OkStatus());
  }

  SimScheduler scheduler;
  SimEnv env;
  std::string log;                 // the network's log
  std::vector<std::string> steps;  // the steps and their results, in the order of their ends
  std::vector<float> weights;
};

std::unique_ptr<SimulatedTrainings> Train(uint64_t seed, bool together) {
  auto simulation = std::make_unique<SimulatedTrainings>(seed);
  simulation->Run(together);
  return simulation;
}

// Returns the first line in which the logs differ; "" if they are equal.
std::string Difference(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = absl::StrSplit(a, '\n'), right = absl::StrSplit(b, '\n');
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (left[i] != right[i]) return StrCat("line ", i + 1, ": ", left[i], " | ", right[i]);
  }
  return left.size() == right.size() ? "" : "one is longer";
}

void ExpectLearned(const std::vector<float>& weights) {
  ASSERT_EQ(weights.size(), 3);
  EXPECT_NEAR(weights[0], 2, 0.1);
  EXPECT_NEAR(weights[1], -3, 0.1);
  EXPECT_NEAR(weights[2], 0.5, 0.1);
}

TEST(TrainingSimTest, ASeedRepeatsTrainingInStep) {
  const auto first = Train(1, /*together=*/true), again = Train(1, true), other = Train(2, true);
  ExpectLearned(first->weights);
  EXPECT_EQ(Difference(first->log, again->log), "");
  EXPECT_NE(first->log, other->log);
  // The order of messages differs, but the computed weights are the same.
  EXPECT_EQ(first->weights, again->weights);
  EXPECT_EQ(first->weights, other->weights);
  EXPECT_EQ(first->steps, other->steps);
}

TEST(TrainingSimTest, ASeedRepeatsTrainingBetweenGraphs) {
  const auto first = Train(1, /*together=*/false), again = Train(1, false), other = Train(2, false);
  ExpectLearned(first->weights);
  EXPECT_EQ(Difference(first->log, again->log), "");
  EXPECT_EQ(first->weights, again->weights);
  for (const char* client : {"client-0: step", "client-1: step"}) {
    EXPECT_NE(first->log.find(client), std::string::npos) << client;
  }
  // The seed chooses which worker's update comes first, and so the variables that each step reads.
  EXPECT_NE(first->log, other->log);
  EXPECT_NE(first->steps, other->steps);
}

}  // namespace
}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// Tests synchronous workers: updates of all workers, updates of the first workers only, and workers
// that leave.
#include "client/sync/sync_replicas.h"

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "client/device_setter.h"
#include "client/optimizers.h"
#include "client/training.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

constexpr int kWorkers = 4, kRows = 25;
constexpr int64_t kSteps = 20;

// A linear model with a table; a batch uses some of its rows.
struct Net {
  explicit Net(Program& program)
      : w(program, "w", {3, 2}, Filled(0.5)),
        table(program, "table", {8, 2}, Zeros()),
        x(CallIn(program, "Placeholder", {},
                 {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 3})}})),
        row(CallIn(program, "Placeholder", {},
                   {{"dtype", DType::kInt32}, {"shape", PartialShape({-1})}})) {
    const Output looked_up =
        Call("ResourceGather", {table.handle(), row}, {{"dtype", DType::kFloat}});
    loss = Mean(Square(MatMul(x, w) + looked_up - 1),
                Constant(program, Tensor::Vector<int32_t>({0, 1})));
  }
  Variable w, table;
  Output x, row, loss;
};

std::vector<Tensor> Batch(int64_t step, int first, int rows) {
  std::vector<float> x;
  std::vector<int32_t> row;
  for (int i = first; i < first + rows; ++i) {
    for (int j = 0; j < 3; ++j) {
      x.push_back(static_cast<float>((step * 31 + 7 * i + 3 * j) % 11) / 11 - 0.5f);
    }
    row.push_back(static_cast<int32_t>((step + i * i) % 7));
  }
  return {Tensor::Of<float>({rows, 3}, x), Tensor::Vector(row)};
}

struct Ended {
  Status status;
  int64_t step = 0, updates = 0, gradients = 0, batches = 0;
  Tensor w, table;
};

TrainingOptions Quiet() {
  return {.max_steps = kSteps,
          .wait_seconds = 20,
          .retry_seconds = 0.05,
          .step_seconds = 20,
          .stop_on_signals = false,
          .say = [](const std::string&) {}};
}

using NextBatch = std::function<StatusOr<std::vector<Tensor>>(int64_t step)>;

Ended TrainReplica(TestCluster& cluster, const SyncReplicasOptions& sync_options,
                   const NextBatch& next_batch) {
  Ended ended;
  const int worker = sync_options.replica;
  const std::string task = StrCat("/job:worker/task:", worker);
  Program program;
  const auto scope =
      program.DeviceFunctionScope(ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = task}));
  const Net net(program);
  Momentum optimizer(0.1, 0.9);
  SyncReplicas sync(program, sync_options);
  const Output train = sync.Apply(optimizer, optimizer.ComputeGradients(program, net.loss));
  TrainingOptions options = Quiet();
  options.target = cluster.target("worker", worker);
  options.session.device_filters = {"/job:ps", task};
  options.is_chief = sync.is_chief();
  TrainingStep step{.train = train, .inputs = {net.x, net.row}, .measures = {{"loss", net.loss}}};
  step.next_batch = [&](int64_t number) {
    ++ended.batches;
    return next_batch(number);
  };
  TrainingLoop loop(program, step, options);
  loop.AddHook(&sync);
  ended.status = loop.Run();
  ended.step = loop.global_step();
  ended.updates = sync.updates();
  ended.gradients = sync.gradients();
  if (ended.status.ok() && sync.is_chief()) {
    ended.w = *loop.session().Fetch(net.w);
    ended.table = *loop.session().Fetch(net.table);
  }
  return ended;
}

class SyncReplicasTest : public testing::Test {
 protected:
  // Trains; only the first `started` replicas run.
  std::vector<Ended> Train(
      SyncReplicasOptions options, int started,
      const std::function<StatusOr<std::vector<Tensor>>(int worker, int64_t step)>& next_batch) {
    std::vector<Ended> ended(started);
    std::vector<std::thread> threads;
    for (int w = 0; w < started; ++w) {
      options.replica = w;
      threads.emplace_back([&, w, options] {
        ended[w] =
            TrainReplica(cluster_, options, [&, w](int64_t step) { return next_batch(w, step); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ended;
  }
  TestCluster cluster_{{{"ps", 1}, {"worker", kWorkers}}, TestCluster::Direct()};
};

StatusOr<std::vector<Tensor>> OwnRows(int worker, int64_t step) {
  return Batch(step, worker * kRows, kRows);
}

TEST_F(SyncReplicasTest, AnUpdateOfAllIsThatOfOneBigBatch) {
  Program program;
  const Net net(program);
  Momentum optimizer(0.1, 0.9);
  TrainingStep step{.train = optimizer.Minimize(program, net.loss), .inputs = {net.x, net.row}};
  step.next_batch = [](int64_t number) -> StatusOr<std::vector<Tensor>> {
    return Batch(number, 0, kWorkers * kRows);
  };
  TrainingLoop alone(program, step, Quiet());
  ASSERT_TRUE(alone.Run().ok());
  const Tensor w = *alone.session().Fetch(net.w), table = *alone.session().Fetch(net.table);

  const auto ended =
      Train({.replicas_to_aggregate = kWorkers, .replicas = kWorkers}, kWorkers, OwnRows);
  for (int i = 0; i < kWorkers; ++i) {
    ASSERT_TRUE(ended[i].status.ok()) << "worker " << i << ": " << ended[i].status;
    EXPECT_EQ(ended[i].step, kSteps);
    EXPECT_EQ(ended[i].batches, kSteps) << "each worker takes each step once";
  }
  EXPECT_EQ(ended[0].updates, kSteps);
  EXPECT_EQ(ended[0].gradients, kSteps * kWorkers);
  for (int i = 0; i < 6; ++i) {
    // 20 steps that sum 100 rows in another order differ by rounding.
    EXPECT_NEAR(ended[0].w.data<float>()[i], w.data<float>()[i], 1e-5);
  }
  for (int i = 0; i < 16; ++i) {
    EXPECT_NEAR(ended[0].table.data<float>()[i], table.data<float>()[i], 1e-5);
  }
}

TEST_F(SyncReplicasTest, TheOthersDoNotWaitForASlowWorker) {
  // Worker 2 gets its first batch only when the others have nearly ended. If they waited for worker
  // 2, its wait here would time out.
  Mutex mu;
  CondVar changed;
  bool near_end = false, in_vain = false;
  const auto ended = Train({.replicas_to_aggregate = 2, .replicas = 3}, 3,
                           [&](int worker, int64_t step) -> StatusOr<std::vector<Tensor>> {
                             MutexLock lock(mu);
                             if (worker != 2) {
                               near_end |= step >= kSteps - 2;
                               changed.NotifyAll();
                               return OwnRows(worker, step);
                             }
                             const auto latest =
                                 std::chrono::steady_clock::now() + std::chrono::seconds(15);
                             while (!near_end && !in_vain) in_vain = !changed.WaitUntil(mu, latest);
                             return OwnRows(worker, step);
                           });
  for (const Ended& each : ended) EXPECT_TRUE(each.status.ok()) << each.status;
  EXPECT_FALSE(in_vain);
  EXPECT_EQ(ended[0].updates, kSteps);
  EXPECT_LT(ended[2].batches, kSteps / 2) << "it takes the newest step when it comes";
}

TEST_F(SyncReplicasTest, AWorkerThatNeverComesHoldsNobodyUp) {
  const auto ended = Train({.replicas_to_aggregate = 2, .replicas = 3}, 2, OwnRows);
  for (const Ended& each : ended) EXPECT_TRUE(each.status.ok()) << each.status;
  EXPECT_EQ(ended[0].gradients, 2 * kSteps);
}

TEST_F(SyncReplicasTest, AWorkerWhoseDataEndSaysSo) {
  const auto ended = Train({.replicas_to_aggregate = 3, .replicas = 3}, 3,
                           [](int worker, int64_t step) -> StatusOr<std::vector<Tensor>> {
                             if (worker == 2 && step >= 5) return OutOfRange("no more rows");
                             return OwnRows(worker, step);
                           });
  for (const Ended& each : ended) EXPECT_TRUE(each.status.ok()) << each.status;
  EXPECT_EQ(ended[0].step, kSteps);
  EXPECT_EQ(ended[1].step, kSteps);
  EXPECT_EQ(ended[2].step, 5);
  EXPECT_EQ(ended[0].gradients, 5 * 3 + (kSteps - 5) * 2);
}

TEST_F(SyncReplicasTest, TheEndOfTheChiefIsEverybodys) {
  const auto ended = Train({.replicas_to_aggregate = 3, .replicas = 3}, 3,
                           [](int worker, int64_t step) -> StatusOr<std::vector<Tensor>> {
                             if (worker == 0 && step >= 7) return OutOfRange("no more rows");
                             return OwnRows(worker, step);
                           });
  for (const Ended& each : ended) EXPECT_TRUE(each.status.ok()) << each.status;
  for (const Ended& each : ended) EXPECT_EQ(each.step, 7);
}

TEST_F(SyncReplicasTest, StragglersAreNotWaitedForForEver) {
  const auto ended =
      Train({.replicas_to_aggregate = 2, .replicas = 2, .straggler_seconds = 0.05}, 1, OwnRows);
  EXPECT_TRUE(ended[0].status.ok()) << ended[0].status;
  EXPECT_EQ(ended[0].gradients, kSteps);
}

TEST_F(SyncReplicasTest, ReplicasThatCannotBeAreRefused) {
  Program program;
  SyncReplicas sync(program, {.replicas_to_aggregate = 3, .replicas = 2, .replica = 1});
  EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("replicas_to_aggregate is 3"));
}

}  // namespace
}  // namespace penstock::client

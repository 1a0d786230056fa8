// SPDX-License-Identifier: Apache-2.0
//
// Tests CollectiveReplicas with workers in threads of this process, each with its own program,
// session and master.
#include "client/allreduce/collective_replicas.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/optimizers.h"
#include "client/session.h"
#include "client/training.h"
#include "core/base/testing/eventually.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

constexpr int kWorkers = 3, kRankRows = 8;

// Returns the rows [first, first + rows) of a step's big batch; the numbers are arbitrary.
Tensor RankBatch(int64_t step, int first, int rows) {
  std::vector<float> values;
  for (int i = first; i < first + rows; ++i) {
    for (int j = 0; j < 3; ++j) {
      values.push_back(static_cast<float>(std::sin(1.7 * i + 0.9 * j + static_cast<double>(step))));
    }
  }
  return Tensor::Of<float>({rows, 3}, values);
}

struct RankNet {
  explicit RankNet(Program& program)
      : x(CallIn(program, "Placeholder", {},
                 {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 3})}})),
        w1(program, "w1", {3, 5}, GlorotUniform(1)),
        w2(program, "w2", {5, 1}, GlorotUniform(2)),
        loss(Mean(Square(MatMul(Tanh(MatMul(x, w1)), w2) - 1),
                  Constant(program, Tensor::Vector<int32_t>({0, 1})))) {}
  Output x;
  Variable w1, w2;
  Output loss;
};

struct Ended {
  Status status;
  int64_t step = 0;
  Tensor w1, w2;
  std::string said;
};

TrainingOptions Quiet(Ended* ended) {
  return {.max_steps = 20,
          .retry_seconds = 0.05,
          .connect_seconds = 5,
          .stop_on_signals = false,
          .say = [ended](const std::string& line) { ended->said += line + "\n"; }};
}

// Trains one worker; its data end after `batches` steps.
Ended TrainReplica(TestCluster& cluster, int worker, int64_t batches, int64_t bucket_bytes) {
  Ended ended;
  Program program;
  CollectiveReplicas replicas(
      program, {.workers = kWorkers, .worker = worker, .bucket_bytes = bucket_bytes});
  const auto scope = program.DeviceFunctionScope(replicas.Devices());
  const RankNet net(program);
  Momentum optimizer(0.1, 0.9);
  const auto gradients = replicas.Average(optimizer.ComputeGradients(program, net.loss));
  const Output train = optimizer.ApplyGradients(program, gradients, program.GlobalStep());
  TrainingOptions options = Quiet(&ended);
  options.target = cluster.target("worker", worker);
  options.is_chief = replicas.is_chief();
  const Output loss = replicas.Average(net.loss);
  options.agree = replicas.Agree();
  TrainingStep step{.train = train, .inputs = {net.x}, .measures = {{"loss", loss}}};
  step.next_batch = [&](int64_t number) -> StatusOr<std::vector<Tensor>> {
    if (number >= batches) return OutOfRange("no more rows");
    return std::vector<Tensor>{RankBatch(number, worker * kRankRows, kRankRows)};
  };
  TrainingLoop loop(program, step, options);
  ended.status = loop.Run();
  ended.step = loop.global_step();
  if (!ended.status.ok()) return ended;
  const auto w1 = loop.session().Fetch(net.w1), w2 = loop.session().Fetch(net.w2);
  if (w1.ok() && w2.ok()) {
    ended.w1 = *w1;
    ended.w2 = *w2;
  }
  return ended;
}

std::vector<Ended> TrainAll(TestCluster& cluster, const std::vector<int64_t>& batches,
                            int64_t bucket_bytes = 1 << 20) {
  std::vector<Ended> ended(kWorkers);
  std::vector<std::thread> threads;
  for (int w = kWorkers - 1; w >= 0; --w) {
    threads.emplace_back([&, w] { ended[w] = TrainReplica(cluster, w, batches[w], bucket_bytes); });
  }
  for (std::thread& thread : threads) thread.join();
  return ended;
}

// Trains in one process with the rows of all workers.
Ended TrainAlone() {
  Ended ended;
  Program program;
  const RankNet net(program);
  Momentum optimizer(0.1, 0.9);
  TrainingStep step{.train = optimizer.Minimize(program, net.loss), .inputs = {net.x}};
  step.next_batch = [&](int64_t number) -> StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{RankBatch(number, 0, kWorkers * kRankRows)};
  };
  TrainingLoop loop(program, step, Quiet(&ended));
  ended.status = loop.Run();
  if (ended.status.ok()) {
    ended.w1 = *loop.session().Fetch(net.w1);
    ended.w2 = *loop.session().Fetch(net.w2);
  }
  return ended;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.valid() && b.valid() && a.bytes() == b.bytes() &&
         std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

class CollectiveReplicasTest : public testing::Test {
 protected:
  TestCluster cluster_{{{"worker", kWorkers}}, TestCluster::Direct()};
};

TEST_F(CollectiveReplicasTest, AStepIsThatOfOneBigBatchAndHasTheSameBitsEachTime) {
  const std::vector<int64_t> plenty(kWorkers, 1000);
  const Ended alone = TrainAlone();
  ASSERT_TRUE(alone.status.ok()) << alone.status;
  std::optional<Ended> before;
  // Bucket sizes for one bucket (twice), and for one bucket per gradient.
  for (const int64_t bucket_bytes : {1 << 20, 1 << 20, 1}) {
    const auto ended = TrainAll(cluster_, plenty, bucket_bytes);
    for (int w = 0; w < kWorkers; ++w) {
      ASSERT_TRUE(ended[w].status.ok()) << "worker " << w << ": " << ended[w].status;
      EXPECT_EQ(ended[w].step, 20);
      EXPECT_TRUE(SameBits(ended[w].w1, ended[0].w1)) << "worker " << w;
      EXPECT_TRUE(SameBits(ended[w].w2, ended[0].w2)) << "worker " << w;
    }
    for (int64_t i = 0; i < alone.w1.num_elements(); ++i) {
      // 20 steps that sum 24 rows in another order differ by rounding.
      EXPECT_NEAR(ended[0].w1.data<float>()[i], alone.w1.data<float>()[i], 1e-5);
    }
    if (before) {
      EXPECT_TRUE(SameBits(before->w1, ended[0].w1)) << "other bits";
    }
    before = ended[0];
    ASSERT_TRUE(ResetCluster(cluster_.target("worker", 0), {}, {}).ok());
  }
}

TEST_F(CollectiveReplicasTest, AWorkerWithoutDataEndsTheOthersInGoodOrder) {
  const auto ended = TrainAll(cluster_, {1000, 7, 1000});
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_TRUE(ended[w].status.ok()) << "worker " << w << ": " << ended[w].status;
    EXPECT_EQ(ended[w].step, 7);
    const std::string who = w == 1 ? "no more rows" : "/job:worker/replica:0/task:1 has left";
    EXPECT_THAT(ended[w].said, HasSubstr(who));
  }
}

TEST_F(CollectiveReplicasTest, NobodyPassesABarrierBeforeTheLastHasCome) {
  constexpr int kRounds = 5;
  std::atomic<int> come = 0;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      Program program;
      CollectiveReplicas replicas(program, {.workers = kWorkers, .worker = w});
      const auto scope = program.DeviceFunctionScope(replicas.Devices());
      const Output barrier = replicas.Barrier();
      const auto session = Session::New(program, cluster_.target("worker", w));
      ASSERT_TRUE(session.ok()) << session.status();
      for (int round = 1; round <= kRounds; ++round) {
        // Each worker is the last one in some rounds: it comes only when the others already wait.
        if (round % kWorkers == w) {
          EXPECT_TRUE(Eventually([&] { return come == kWorkers * round - 1; }));
        }
        ++come;
        const Status passed = (*session)->Execute(barrier);
        EXPECT_TRUE(passed.ok()) << passed;
        EXPECT_GE(come, kWorkers * round) << "worker " << w << " in round " << round;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CollectiveReplicasMistakes, AreTheProgramsError) {
  Program program;
  CollectiveReplicas replicas(program, {.workers = 2, .worker = 2});
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("there is no worker 2 of 2"));
  Program other;
  const Variable w(other, "w", {1}, Ones());
  TrainingOptions options{.agree = w.Read(), .concurrent_steps = 2};
  TrainingLoop loop(other, {.train = w.AssignAdd(w.Read())}, options);
  EXPECT_TRUE(absl::IsInvalidArgument(loop.Run()));
}

}  // namespace
}  // namespace penstock::client

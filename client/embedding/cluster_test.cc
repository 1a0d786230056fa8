// SPDX-License-Identifier: Apache-2.0
//
// Two workers train a partitioned table on two parameter servers. Tests that the result is that of
// one process, and that each server receives one list of ids and one gradient and sends one tensor
// of rows.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/device_setter.h"
#include "client/embedding/lookup.h"
#include "client/optimizers.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr int64_t kRows = 500, kDepth = 4;
constexpr int kServers = 2, kWorkers = 2;

struct Method {
  const char* name;
  std::function<std::unique_ptr<Optimizer>()> make;
};

std::vector<Method> Methods() {
  return {
      {"GradientDescent", [] { return std::make_unique<GradientDescent>(0.1); }},
      {"Momentum", [] { return std::make_unique<Momentum>(0.05, 0.8); }},
      {"Adagrad", [] { return std::make_unique<Adagrad>(0.5); }},
      {"RMSProp", [] { return std::make_unique<RmsProp>(0.05); }},
      {"Adam", [] { return std::make_unique<Adam>(0.05); }},
  };
}

// The program of one worker; all workers make the same variables.
struct Worker {
  Worker(const Method& method, const std::optional<int>& task, PartitionStrategy strategy) {
    std::optional<GraphBuilder::Scope> placed;
    if (task) {
      placed.emplace(program.DeviceFunctionScope(ReplicaDeviceSetter(
          {.ps_tasks = kServers, .worker_device = StrCat("/job:worker/task:", *task)})));
    }
    table.emplace(
        program, "table", Shape({kRows, kDepth}), RandomUniform(-1, 1, 3),
        PartitionedVariableOptions{
            .parts = kServers, .strategy = strategy, .variable = {.dtype = DType::kDouble}});
    ids = CallIn(program, "Placeholder", {},
                 {{"dtype", DType::kInt64}, {"shape", PartialShape({-1})}});
    splits = CallIn(program, "Placeholder", {},
                    {{"dtype", DType::kInt64}, {"shape", PartialShape({-1})}});
    const Output rows = EmbeddingLookupSparse(*table, IdLists::FromRagged(ids, splits));
    const Output loss = Sum(Square(rows * 3), Constant(program, Tensor::Vector<int32_t>({0, 1})));
    optimizer = method.make();
    train = optimizer->Minimize(program, loss);
    whole = table->Read();
    init = program.Initialize(program.globals());
  }
  Status Step(const std::vector<int64_t>& batch, RunMetadata* metadata = nullptr) {
    const int64_t size = std::ssize(batch);
    RunMetadata ignored;
    return session
        ->Run({{ids, Tensor::Vector<int64_t>(batch)},
               {splits, Tensor::Vector<int64_t>({0, size / 2, size})}},
              {}, {train}, {.trace = metadata != nullptr}, metadata ? metadata : &ignored)
        .status();
  }

  Program program;
  std::optional<PartitionedVariable> table;
  std::unique_ptr<Optimizer> optimizer;
  Output ids, splits, train, whole, init;
  std::unique_ptr<Session> session;
};

// Returns ids, some of which repeat, within a step and from step to step.
std::vector<int64_t> BatchOf(int64_t step) {
  return {2, step, 2, 10 * step, kRows - 1, step, 2, 2, 249, 250};
}

class EmbeddingClusterTest : public testing::TestWithParam<std::tuple<Method, PartitionStrategy>> {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new TestCluster({{"ps", kServers}, {"worker", kWorkers}});
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  static TestCluster* cluster_;
};
TestCluster* EmbeddingClusterTest::cluster_ = nullptr;

INSTANTIATE_TEST_SUITE_P(
    All, EmbeddingClusterTest,
    testing::Combine(testing::ValuesIn(Methods()),
                     testing::Values(PartitionStrategy::kDiv, PartitionStrategy::kMod)),
    [](const auto& info) {
      return StrCat(std::get<0>(info.param).name,
                    std::get<1>(info.param) == PartitionStrategy::kMod ? "_Mod" : "_Div");
    });

// Counts, by receiving device, the received tensors of more than 8 bytes.
std::map<std::string, int> ReceivedByDevice(const RunMetadata& metadata) {
  std::map<std::string, int> received;
  for (const DeviceStats& device : metadata.step_stats) {
    for (const NodeStats& node : device.nodes) {
      if (node.op != "_Recv") continue;
      const bool large = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [](const NodeStats::Out& out) { return out.bytes > 8; });
      if (large) ++received[device.device];
    }
  }
  return received;
}

int CountNodes(const RunMetadata& metadata, string_view op) {
  int count = 0;
  for (const DeviceStats& device : metadata.step_stats) {
    for (const NodeStats& node : device.nodes) count += node.op == op;
  }
  return count;
}

TEST_P(EmbeddingClusterTest, TwoWorkersTrainATableOnTwoServers) {
  const auto& [method, strategy] = GetParam();
  Worker alone(method, std::nullopt, strategy);
  auto local = Session::New(alone.program);
  ASSERT_TRUE(local.ok()) << local.status();
  alone.session = *std::move(local);
  ASSERT_TRUE(alone.session->Execute(alone.init).ok());

  std::vector<std::unique_ptr<Worker>> workers;
  for (int task = 0; task < kWorkers; ++task) {
    workers.push_back(std::make_unique<Worker>(method, task, strategy));
    auto session = Session::New(workers.back()->program, cluster_->target("worker", task),
                                {.operation_timeout_ms = 20'000});
    ASSERT_TRUE(session.ok()) << session.status();
    workers.back()->session = *std::move(session);
  }
  EXPECT_EQ(workers[0]->table->parts()[0].device(), "/job:ps/task:0");
  EXPECT_EQ(workers[0]->table->parts()[1].device(), "/job:ps/task:1");
  const Status initialized = workers[0]->session->Execute(workers[0]->init);
  ASSERT_TRUE(initialized.ok()) << initialized;

  RunMetadata metadata;
  for (int64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(alone.Step(BatchOf(step)).ok());
    metadata = {};
    const Status status = workers[step % kWorkers]->Step(BatchOf(step), &metadata);
    ASSERT_TRUE(status.ok()) << status;
  }
  const auto want = alone.session->Fetch(alone.whole);
  const auto got = workers[0]->session->Fetch(workers[1]->whole.name());
  ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
  EXPECT_EQ(got->ToString(10'000), want->ToString(10'000));

  // The shape of rows is known, so the step does not ask a server for it.
  EXPECT_EQ(CountNodes(metadata, "VariableShape"), 0);
  EXPECT_GT(CountNodes(metadata, "ResourceGather"), 0);
  for (const auto& [device, count] : ReceivedByDevice(metadata)) {
    // A worker receives rows from each server; a server receives the ids, and the rows of the
    // gradient.
    EXPECT_EQ(count, 2) << device;
  }
  EXPECT_EQ(ReceivedByDevice(metadata).size(), kServers + 1);
}

}  // namespace
}  // namespace penstock::client

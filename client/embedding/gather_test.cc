// SPDX-License-Identifier: Apache-2.0
//
// A worker looks up rows of a table on a parameter server. Tests every optimizer and every op that
// gathers rows against the same training in one process; and the size of the tensors sent between
// the tasks.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "client/device_setter.h"
#include "client/optimizers.h"
#include "client/session.h"
#include "distributed/testing/test_cluster.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr int64_t kGatheredRows = 500, kGatheredDepth = 4;
constexpr int64_t kTableBytes = kGatheredRows * kGatheredDepth * 8;

struct GatherMethod {
  const char* name;
  std::function<std::unique_ptr<Optimizer>()> make;
};

std::vector<GatherMethod> GatherMethods() {
  return {
      {"GradientDescent", [] { return std::make_unique<GradientDescent>(0.1); }},
      {"Momentum", [] { return std::make_unique<Momentum>(0.05, 0.8); }},
      {"Nesterov", [] { return std::make_unique<Momentum>(0.05, 0.8, true); }},
      {"Adagrad", [] { return std::make_unique<Adagrad>(0.5); }},
      {"RMSProp", [] { return std::make_unique<RmsProp>(0.05); }},
      {"Adam", [] { return std::make_unique<Adam>(0.05); }},
  };
}

struct Lookup {
  const char* name;
  std::function<Output(const Variable& table, Output ids)> rows;
  bool ref = false;
};

std::vector<Lookup> Lookups() {
  const auto gather = [](const Variable& t, Output ids) { return Call("Gather", {t, ids}); };
  return {
      {"ResourceGather",
       [](const Variable& t, Output ids) {
         return Call("ResourceGather", {t.handle(), ids}, {{"dtype", DType::kDouble}});
       }},
      {"Gather", gather},
      {"GatherV2",
       [](const Variable& t, Output ids) {
         return Gather(t, ids, Constant(*ids.sink, Tensor::Scalar<int32_t>(0)));
       }},
      {"GatherThroughIdentity",
       [](const Variable& t, Output ids) {
         return Call("Gather", {Identity(t), ids});
       }},
      {"GatherByReference", gather, true},
  };
}

using Param = std::tuple<GatherMethod, Lookup>;

class EmbeddingTest : public testing::TestWithParam<Param> {
 protected:
  static void SetUpTestSuite() { cluster_ = new TestCluster({{"ps", 1}, {"worker", 1}}); }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  // Returns the table after some steps. With `cluster`, the table is on the ps and everything else
  // on the worker. Sets `*largest` to the bytes of the largest tensor that a task received in the
  // last step.
  StatusOr<std::vector<double>> Train(bool cluster, int64_t* largest) {
    Program program;
    std::optional<GraphBuilder::Scope> placed;
    if (cluster) {
      placed.emplace(program.DeviceFunctionScope(
          ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = "/job:worker/task:0"})));
    }
    const auto& [method, lookup] = GetParam();
    const Variable table(program, "table", {kGatheredRows, kGatheredDepth}, RandomUniform(-1, 1, 3),
                         {.dtype = DType::kDouble, .ref = lookup.ref});
    const Output ids = CallIn(program, "Placeholder", {},
                              {{"dtype", DType::kInt64}, {"shape", PartialShape({-1})}});
    const Output scaled = Square(lookup.rows(table, ids) * 3);
    const Output loss = Sum(scaled, Constant(program, Tensor::Vector<int32_t>({0, 1})));
    const auto optimizer = method.make();
    const auto gradients = optimizer->ComputeGradients(program, loss);
    EXPECT_TRUE(gradients[0].gradient.sparse());
    const Output train = optimizer->ApplyGradients(program, gradients);

    ASSIGN_OR_RETURN(const auto session,
                     Session::New(program, cluster ? cluster_->target() : "",
                                  {.operation_timeout_ms = 20'000, .isolate_state = cluster}));
    RETURN_IF_ERROR(session->Execute(program.Initialize(program.globals())));
    RunMetadata metadata;
    for (int64_t step = 0; step < 5; ++step) {
      // Some rows repeat, within a step and from step to step.
      const Tensor batch =
          Tensor::Vector<int64_t>({2, step, 2, 10 * step, kGatheredRows - 1, step});
      metadata = {};
      RETURN_IF_ERROR(
          session->Run({{ids, batch}}, {}, {train}, {.trace = true}, &metadata).status());
    }
    *largest = LargestReceived(metadata);
    ASSIGN_OR_RETURN(const Tensor value, session->Fetch(table));
    const auto values = value.flat<double>();
    return std::vector<double>(values.begin(), values.end());
  }

  static int64_t LargestReceived(const RunMetadata& metadata) {
    int64_t largest = 0;
    for (const DeviceStats& device : metadata.step_stats) {
      for (const NodeStats& node : device.nodes) {
        if (node.op != "_Recv") continue;
        for (const NodeStats::Out& out : node.outputs) largest = std::max(largest, out.bytes);
      }
    }
    return largest;
  }

  static TestCluster* cluster_;
};
TestCluster* EmbeddingTest::cluster_ = nullptr;

INSTANTIATE_TEST_SUITE_P(All, EmbeddingTest,
                         testing::Combine(testing::ValuesIn(GatherMethods()),
                                          testing::ValuesIn(Lookups())),
                         [](const auto& info) {
                           return StrCat(std::get<0>(info.param).name, "_",
                                         std::get<1>(info.param).name);
                         });

TEST_P(EmbeddingTest, ATableOnAServerLearnsWhatItLearnsInOneProcess) {
  int64_t largest = 0;
  const auto alone = Train(false, &largest);
  ASSERT_TRUE(alone.ok()) << alone.status();
  const auto apart = Train(true, &largest);
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(*apart, *alone);
  EXPECT_GT(largest, 0);
  // A Gather on the worker reads the complete value of a ref variable.
  const bool sends_rows = !std::get<1>(GetParam()).ref;
  EXPECT_EQ(largest < kTableBytes / 10, sends_rows) << largest << " bytes";
}

}  // namespace
}  // namespace penstock::client

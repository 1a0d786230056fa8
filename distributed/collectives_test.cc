// SPDX-License-Identifier: Apache-2.0
//
// Tests collectives in sessions on real servers: in one graph, and between the graphs of
// several sessions, each with its own master.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/graph/builder.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::string TaskOf(int worker) { return StrCat("/job:worker/task:", worker); }

Attrs Keys(int size, int instance) {
  return {{"group_key", 1}, {"group_size", size}, {"instance_key", instance}};
}
Attrs ReduceAttrs(int size, int instance, const char* final_op = "Id") {
  Attrs attrs = Keys(size, instance);
  attrs["merge_op"] = "Add";
  attrs["final_op"] = final_op;
  attrs["subdiv_offsets"] = std::vector<int64_t>{0};
  return attrs;
}

Tensor Floats(int64_t count, float value) {
  Tensor t(DType::kFloat, Shape({count}));
  for (float& x : t.mutable_flat<float>()) x = value;
  return t;
}

class CollectivesTest : public testing::TestWithParam<const char*> {
 protected:
  CollectivesTest() : cluster_({{"worker", 3}}, Options()) {}
  static ServerOptions Options() {
    ServerOptions options = TestCluster::Quick();
    options.task.protocol = GetParam();
    return options;
  }
  static Status Run(SessionInterface& session, const GraphBuilder& g, const Outputs& fetches,
                    std::vector<Tensor>* outputs, const RunOptions& options = {}) {
    RETURN_IF_ERROR(g.status());
    RETURN_IF_ERROR(session.Extend(g.graph()));
    std::vector<std::string> names;
    for (const Output& fetch : fetches) names.push_back(fetch.name());
    return session.Run(options, {}, names, {}, outputs, nullptr);
  }

  TestCluster cluster_;
};

TEST_P(CollectivesTest, InOneGraph) {
  for (const int64_t count : {3, 300'000}) {
    GraphBuilder g;
    Outputs fetches;
    for (int w = 0; w < 3; ++w) {
      const auto scope = g.DeviceScope(TaskOf(w));
      const Output own = Constant(g, Floats(count, static_cast<float>(w + 1)));
      fetches.push_back(Call("CollectiveReduce", {own}, ReduceAttrs(3, 1, "Div")));
      Attrs gather = Keys(3, 2);
      gather["shape"] = PartialShape({3 * count});
      fetches.push_back(Call("CollectiveGather", {own}, gather));
      Attrs transfer = Keys(3, 3);
      transfer["shape"] = PartialShape({count});
      if (w == 1) {
        fetches.push_back(Call("CollectiveBcastSend", {own}, transfer));
      } else {
        transfer["T"] = DType::kFloat;
        fetches.push_back(CallIn(g, "CollectiveBcastRecv", {}, transfer));
      }
    }
    const auto session = cluster_.NewSession();
    for (int step = 0; step < 5; ++step) {
      std::vector<Tensor> out;
      const Status ran = Run(*session, g, fetches, &out);
      ASSERT_TRUE(ran.ok()) << ran;
      for (int w = 0; w < 3; ++w) {
        ASSERT_EQ(out[3 * w].num_elements(), count);
        ASSERT_EQ(out[3 * w].data<float>()[count - 1], 2);
        ASSERT_EQ(out[3 * w + 1].num_elements(), 3 * count);
        for (int r = 0; r < 3; ++r) {
          ASSERT_EQ(out[3 * w + 1].data<float>()[r * count], static_cast<float>(r + 1));
        }
        ASSERT_EQ(out[3 * w + 2].data<float>()[count - 1], 2);
      }
    }
  }
}

TEST_P(CollectivesTest, KeysAsInputs) {
  GraphBuilder g;
  Outputs fetches;
  const auto scalar = [&](int32_t value) { return Constant(g, Tensor::Scalar<int32_t>(value)); };
  for (int w = 0; w < 2; ++w) {
    const auto scope = g.DeviceScope(TaskOf(w));
    const Output own = Constant(g, Tensor::Of<int32_t>({2}, {w, 10 * w + 1}));
    const Attrs attrs = {{"merge_op", "Max"}, {"final_op", "Id"}};
    const std::vector<NodeInput> inputs = {own, scalar(2), scalar(5), scalar(1), Outputs{}};
    fetches.push_back(Call("CollectiveReduceV2", inputs, attrs));
    const std::vector<NodeInput> scattered = {own, scalar(2), scalar(5), scalar(2), Outputs{}};
    fetches.push_back(Call("CollectiveReduceScatterV2", scattered, attrs));
    const std::vector<NodeInput> gathered = {own, scalar(2), scalar(5), scalar(3), Outputs{}};
    fetches.push_back(Call("CollectiveGatherV2", gathered));
    if (w == 0) {
      fetches.push_back(Call("CollectiveBcastSendV2", {own, scalar(2), scalar(5), scalar(4)}));
    } else {
      const Output shape = Constant(g, Tensor::Vector<int32_t>({2}));
      fetches.push_back(Call("CollectiveBcastRecvV2", {scalar(2), scalar(5), scalar(4), shape},
                             {{"T", DType::kInt32}}));
    }
  }
  std::vector<Tensor> out;
  const auto session = cluster_.NewSession();
  const Status ran = Run(*session, g, fetches, &out);
  ASSERT_TRUE(ran.ok()) << ran;
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(out[4 * w].ToString(), "int32[2] 1 11");
    EXPECT_EQ(out[4 * w + 1].ToString(), w == 0 ? "int32[1] 1" : "int32[1] 11");
    EXPECT_EQ(out[4 * w + 2].ToString(), "int32[4] 0 1 1 11");
    EXPECT_EQ(out[4 * w + 3].ToString(), "int32[2] 0 1");
  }
}

// A worker whose client runs a graph of its own, in a session with the worker's task as master.
struct Replica {
  Replica(TestCluster& cluster, int worker, int size)
      : session(cluster.NewSession({}, "worker", worker)) {
    const auto scope = g.DeviceScope(TaskOf(worker));
    const Output own = Constant(g, Floats(50'000, static_cast<float>(worker + 1)));
    sum = Call("CollectiveReduce", {own}, ReduceAttrs(size, 1));
    CHECK_OK(g.status());
    CHECK_OK(session->Extend(g.graph()));
  }
  Status Step(float* value, const RunOptions& options = {}) {
    std::vector<Tensor> out;
    // Without fetches, the step has no other communication.
    RETURN_IF_ERROR(session->Run(options, {}, {}, {g.NodeOf(sum)->name()}, &out, nullptr));
    RETURN_IF_ERROR(session->Run(options, {}, {sum.name()}, {}, &out, nullptr));
    *value = out[0].data<float>()[0];
    return OkStatus();
  }
  // Runs steps until one fails.
  void StepOn() {
    float value = 0;
    while (ended.ok()) {
      ended = Step(&value);
      MutexLock lock(mu);
      ++steps;
      stepped.NotifyAll();
    }
  }
  // Waits until StepOn has run `count` steps.
  void AwaitSteps(int count) {
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    MutexLock lock(mu);
    while (steps < count) CHECK(stepped.WaitUntil(mu, latest), "waited in vain for steps");
  }

  Mutex mu;
  CondVar stepped;
  int steps ABSL_GUARDED_BY(mu) = 0;
  GraphBuilder g;
  std::unique_ptr<SessionInterface> session;
  Output sum;
  Status ended;
};

TEST_P(CollectivesTest, BetweenGraphs) {
  std::vector<std::thread> threads;
  for (int w = 2; w >= 0; --w) {
    threads.emplace_back([this, w] {
      Replica replica(cluster_, w, 3);
      for (int step = 0; step < 20; ++step) {
        float value = 0;
        const Status ran = replica.Step(&value);
        ASSERT_TRUE(ran.ok()) << "worker " << w << ", step " << step << ": " << ran;
        ASSERT_EQ(value, 6);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(CollectivesTest, ALostTaskEndsTheStepsOfAllAndTrainingGoesOnInNewSessions) {
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Replica>> replicas;
    for (int w = 0; w < 3; ++w) replicas.push_back(std::make_unique<Replica>(cluster_, w, 3));
    std::vector<std::thread> threads;
    for (int w = 0; w < 3; ++w) threads.emplace_back([&, w] { replicas[w]->StepOn(); });
    for (const auto& replica : replicas) replica->AwaitSteps(2);
    cluster_.Stop("worker", 2);
    for (std::thread& thread : threads) thread.join();
    for (int w = 0; w < 2; ++w) {
      // A server that is stopped in an orderly way closes its sessions, perhaps between
      // two steps.
      EXPECT_TRUE(absl::IsUnavailable(replicas[w]->ended) || absl::IsAborted(replicas[w]->ended) ||
                  absl::IsOutOfRange(replicas[w]->ended))
          << replicas[w]->ended;
      EXPECT_THAT(std::string(replicas[w]->ended.message()),
                  HasSubstr("/job:worker/replica:0/task:2"));
    }
    replicas.clear();
    cluster_.Restart("worker", 2);
  }
}

TEST_P(CollectivesTest, ACancelledStepIsAnErrorOfAll) {
  Replica a(cluster_, 0, 2), b(cluster_, 1, 2);
  std::thread other([&] { b.StepOn(); });
  float value = 0;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a.Step(&value).ok());
  a.session = nullptr;  // destroying it closes the session
  other.join();
  EXPECT_TRUE(absl::IsOutOfRange(b.ended)) << b.ended;
  EXPECT_THAT(std::string(b.ended.message()), HasSubstr("task:0"));
  // A step that waits for a missing rank ends at its deadline.
  Replica c(cluster_, 2, 2);
  EXPECT_TRUE(absl::IsDeadlineExceeded(c.Step(&value, {.timeout_ms = 200})));
  EXPECT_TRUE(cluster_.Idle());
}

INSTANTIATE_TEST_SUITE_P(Transports, CollectivesTest, testing::Values("grpc", "auto", "local"));

}  // namespace
}  // namespace penstock

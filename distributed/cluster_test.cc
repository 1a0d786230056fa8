// SPDX-License-Identifier: Apache-2.0
//
// Tests of whole clusters without failures. Partial runs are in partial_run_test.cc, failures in
// failure_test.cc.
#include <thread>

#include "core/base/error_origin.h"
#include "core/graph/builder.h"
#include "core/runtime/testing/test_ops.h"
#include "distributed/testing/two_tasks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// A variable w on the ps, its double on the worker, and an op that adds to w a value that is fed at
// the worker.
struct Model {
  explicit Model(GraphBuilder& g, int64_t size = 1, const std::string& container = "") {
    {
      const auto on_ps = g.DeviceScope(kPs);
      w = CallIn(g, "VariableV2", {},
                 {{"dtype", DType::kFloat},
                  {"shape", PartialShape({size})},
                  {"container", container},
                  {"shared_name", "w"}});
      Call("Assign", {w, Constant(g, Tensor::Vector<float>(std::vector<float>(size, 0)))});
    }
    {
      const auto on_worker = g.DeviceScope(kWorker);
      x = CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({size})}});
      y = w * 2;
      delta = x * 1;
    }
    const auto on_ps = g.DeviceScope(kPs);
    train = Call("AssignAdd", {w, delta});
  }
  static constexpr char kInit[] = "Assign";
  Output w, x, y, delta, train;
};

TEST(ClusterTest, TrainsAVariableAcrossTasks) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  auto session = cluster.NewSession();
  GraphBuilder g;
  Model model(g, 3);
  ASSERT_TRUE(g.status().ok()) << g.status();
  Status status = session->Extend(g.graph());
  ASSERT_TRUE(status.ok()) << status;
  std::vector<Tensor> out;
  status = session->Run({}, {}, {}, {Model::kInit}, &out, nullptr);
  ASSERT_TRUE(status.ok()) << status;
  const Feeds feeds = {{model.x.name(), Tensor::Vector<float>({1, 2, 3})}};
  for (int i = 0; i < 10; ++i) {
    status = session->Run({}, feeds, {}, {"AssignAdd"}, &out, nullptr);
    ASSERT_TRUE(status.ok()) << status;
  }
  ASSERT_TRUE(session->Run({}, {}, {model.w.name(), model.y.name()}, {}, &out, nullptr).ok());
  EXPECT_EQ(AttrValue(out[0]), AttrValue(Tensor::Vector<float>({10, 20, 30})));
  EXPECT_EQ(AttrValue(out[1]), AttrValue(Tensor::Vector<float>({20, 40, 60})));
  EXPECT_TRUE(cluster.Idle());
}

INSTANTIATE_TEST_SUITE_P(Network, TwoTasksTest, AllNetworks(), NameOf);

TEST_P(TwoTasksTest, TensorsOfAllKindsCrossTasks) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  Tensor large(DType::kFloat, Shape({1 << 20}));  // 4 MiB: sent in several frames
  for (int i = 0; i < 1 << 20; ++i) large.mutable_flat<float>()[i] = static_cast<float>(i);
  const Tensor values[] = {
      Tensor::Scalar(3.0f),
      Tensor::Vector<int64_t>({1, -2}),
      Tensor::Of<bool>({2, 1}, {true, false}),
      Tensor::Vector<std::string>({"a", "", std::string(100'000, 'x')}),
      Tensor(DType::kFloat, Shape({0, 3})),
      large,
  };
  std::vector<std::string> fetches;
  for (const Tensor& value : values) {
    Output sent;
    {
      const auto ps = g.DeviceScope(kPs);
      const Output fed =
          CallIn(g, "Placeholder", {}, {{"dtype", value.dtype()}, {"shape", PartialShape()}});
      sent = Call("Identity", {fed});
    }
    const auto worker = g.DeviceScope(kWorker);
    fetches.push_back(Call("Identity", {sent}).name());
  }
  Feeds feeds;
  for (int i = 0; i < 6; ++i) {
    feeds.emplace_back(i == 0 ? "Placeholder:0" : StrCat("Placeholder_", i, ":0"), values[i]);
  }
  const Status status = Run(*session, g, feeds, fetches);
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(out[i].dtype(), values[i].dtype());
    EXPECT_EQ(AttrValue(out[i]), AttrValue(values[i])) << i;
  }
}

// Two sessions share variables, and resources that have a shared_name, but no other resources.
TEST_P(TwoTasksTest, AQueueWithoutASharedNameBelongsToItsSession) {
  for (const bool shared : {false, true}) {
    GraphBuilder g;
    const auto worker = g.DeviceScope(kWorker);
    const Output queue = CallIn(g, "FIFOQueueV2", {},
                                {{"component_types", std::vector<DType>{DType::kFloat}},
                                 {"shared_name", shared ? "tokens" : ""}});
    CallN("QueueEnqueueV2", {queue, Outputs{Constant(g, Tensor::Scalar(1.0f))}}, {});
    const Output size = Call("QueueSizeV2", {queue});
    auto first = cluster_->NewSession(), second = cluster_->NewSession();
    for (int i = 0; i < 2; ++i) {  // the node uses the same queue in all steps
      const Status put = Run(*first, g, {}, {}, {"QueueEnqueueV2"});
      ASSERT_TRUE(put.ok()) << put;
    }
    ASSERT_TRUE(Run(*first, g, {}, {size.name()}).ok());
    EXPECT_EQ(out[0].scalar<int32_t>(), 2);
    ASSERT_TRUE(Run(*second, g, {}, {size.name()}).ok());
    EXPECT_EQ(out[0].scalar<int32_t>(), shared ? 2 : 0);
  }
}

TEST_P(TwoTasksTest, ManySmallTensorsAndConcurrentSteps) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  std::vector<Output> sums;
  Output x;
  {
    const auto worker = g.DeviceScope(kWorker);
    x = CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
  }
  Output total = x;
  for (int i = 0; i < 100; ++i) {
    Output on_ps;
    {
      const auto ps = g.DeviceScope(kPs);
      on_ps = x + static_cast<double>(i);
    }
    const auto worker = g.DeviceScope(kWorker);
    total = total + on_ps;
  }
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        std::vector<Tensor> outputs;
        const Status status = session->Run({}, {{x.name(), Tensor::Scalar(static_cast<float>(t))}},
                                           {total.name()}, {}, &outputs, nullptr);
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_EQ(outputs[0].scalar<float>(), 101 * t + 4950);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(TwoTasksTest, VariablesAreSharedBetweenSessionsByName) {
  GraphBuilder g;
  Model model(g);
  auto chief = cluster_->NewSession({}, "worker", 0);
  auto other = cluster_->NewSession({}, "worker", 1);
  ASSERT_TRUE(Run(*chief, g, {}, {}, {Model::kInit}).ok());
  const Feeds feeds = {{model.x.name(), Tensor::Vector<float>({1})}};
  ASSERT_TRUE(Run(*chief, g, feeds, {model.train.name()}).ok());
  ASSERT_TRUE(Run(*other, g, feeds, {model.train.name()}).ok());
  ASSERT_TRUE(Run(*chief, g, {}, {model.w.name()}).ok());
  EXPECT_EQ(out[0].flat<float>()[0], 2);
  // Variables outlive sessions.
  EXPECT_TRUE(chief->Close().ok());
  auto later = cluster_->NewSession();
  ASSERT_TRUE(Run(*later, g, {}, {model.w.name()}).ok());
  EXPECT_EQ(out[0].flat<float>()[0], 2);
}

TEST_P(TwoTasksTest, IsolatedSessionsHaveTheirOwnVariables) {
  GraphBuilder g;
  Model model(g);
  auto shared = cluster_->NewSession();
  auto isolated = cluster_->NewSession({.isolate_state = true});
  ASSERT_TRUE(Run(*shared, g, {}, {}, {Model::kInit}).ok());
  const Status status = Run(*isolated, g, {}, {model.w.name()});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  ASSERT_TRUE(Run(*isolated, g, {}, {}, {Model::kInit}).ok());
  const Feeds feeds = {{model.x.name(), Tensor::Vector<float>({1})}};
  ASSERT_TRUE(Run(*isolated, g, feeds, {model.train.name()}).ok());
  ASSERT_TRUE(Run(*shared, g, {}, {model.w.name()}).ok());
  EXPECT_EQ(out[0].flat<float>()[0], 0);
}

TEST_P(TwoTasksTest, ResetClosesSessionsAndDropsContainers) {
  GraphBuilder g, h;
  Model kept(g, 1, "kept"), dropped(h, 1, "dropped");
  auto a = cluster_->NewSession(), b = cluster_->NewSession();
  ASSERT_TRUE(Run(*a, g, {}, {}, {Model::kInit}).ok());
  ASSERT_TRUE(Run(*b, h, {}, {}, {Model::kInit}).ok());
  ASSERT_TRUE(ResetCluster(cluster_->target(), {"dropped"}, {}).ok());
  const Status gone = Run(*a, g, {}, {kept.w.name()});
  EXPECT_EQ(gone.code(), StatusCode::kAborted) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("is not found"));
  auto c = cluster_->NewSession(), d = cluster_->NewSession();
  EXPECT_TRUE(Run(*c, g, {}, {kept.w.name()}).ok());
  EXPECT_EQ(Run(*d, h, {}, {dropped.w.name()}).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(ResetCluster(cluster_->target(), {"kept"}, {}).ok());
}

TEST_P(TwoTasksTest, ErrorsNameTheTaskAndTheNode) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  Output fail;
  {
    const auto ps = g.DeviceScope(kPs);
    fail = CallIn(g, "TestFail", {Outputs{}}, {{"message", "end of input"}});
  }
  const auto worker = g.DeviceScope(kWorker);
  const Output y = fail + 1.0;
  const Output z = Constant(g, Tensor::Scalar(1.0f)) + 1.0;
  const Status status = Run(*session, g, {}, {y.name()});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("From /job:ps/replica:0/task:0:\nend of input\n\t [[{{node TestFail}}]]"));
  EXPECT_EQ(FailedNode(status), "TestFail");
  EXPECT_EQ(FailedTask(status), "/job:ps/replica:0/task:0");
  EXPECT_EQ(Run(*session, g, {}, {"nope:0"}), NotFound("FetchOutputs node nope:0: not found"));
  // The session can still be used.
  EXPECT_TRUE(Run(*session, g, {}, {z.name()}).ok());
}

TEST_P(TwoTasksTest, ADeadlineEndsTheStepEverywhere) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  Output block;
  {
    const auto ps = g.DeviceScope(kPs);
    block = CallIn(g, "TestStall", {Outputs{}});
  }
  const auto worker = g.DeviceScope(kWorker);
  const Output y = block + 1.0;
  const int64_t begin = Env::Real().NowNanos();
  const Status status = Run(*session, g, {}, {y.name()}, {}, {.timeout_ms = 100});
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(Env::Real().NowNanos() - begin, 2'000'000'000);
  EXPECT_TRUE(cluster_->Idle());
}

TEST_P(TwoTasksTest, AClientThatGoesAwayEndsItsStep) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  const auto ps = g.DeviceScope(kPs);
  const Output block = CallIn(g, "TestStall", {Outputs{}});
  Cancellation cancellation;
  std::thread canceller([&] {
    EXPECT_TRUE(AwaitStalled());
    cancellation.Cancel(Cancelled("had enough"));
  });
  EXPECT_EQ(Run(*session, g, {}, {block.name()}, {}, {.cancellation = &cancellation}),
            Cancelled("had enough"));
  canceller.join();
  EXPECT_TRUE(cluster_->Idle());
}

TEST_P(TwoTasksTest, CloseCancelsRunningSteps) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  {
    const auto ps = g.DeviceScope(kPs);
    CallIn(g, "TestStall", {Outputs{}});
  }
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  // The steps block more threads than any pool has.
  std::vector<std::thread> threads;
  for (int i = 0; i < 50; ++i) {
    threads.emplace_back([&] {
      std::vector<Tensor> outputs;
      const Status status = session->Run({}, {}, {"TestStall:0"}, {}, &outputs, nullptr);
      EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("Session::Close()"));
    });
  }
  EXPECT_TRUE(AwaitStalled(50));
  // The blocked steps do not delay a step that does not block.
  auto other = cluster_->NewSession();
  GraphBuilder h;
  const Output one = Constant(h, Tensor::Scalar(1.0f)) + 1.0;
  EXPECT_TRUE(Run(*other, h, {}, {one.name()}).ok());
  EXPECT_TRUE(session->Close().ok());
  for (auto& thread : threads) thread.join();
}

TEST_P(TwoTasksTest, DevicesAndFilters) {
  auto all = cluster_->NewSession();
  const auto devices = all->ListDevices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->front().name.ToString(), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(std::count_if(devices->begin(), devices->end(),
                          [](const DeviceInfo& d) { return d.name.type == "CPU"; }),
            3);
  auto some = cluster_->NewSession({.device_filters = {"/job:worker/task:0"}});
  const auto filtered = some->ListDevices();
  ASSERT_TRUE(filtered.ok()) << filtered.status();
  for (const DeviceInfo& device : *filtered) EXPECT_EQ(device.name.job, "worker");
  GraphBuilder g;
  Model model(g);
  EXPECT_EQ(Run(*some, g, {}, {}, {Model::kInit}).code(), StatusCode::kInvalidArgument);
}

TEST_P(TwoTasksTest, CallablesAndTraces) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  Model model(g);
  ASSERT_TRUE(Run(*session, g, {}, {}, {Model::kInit}).ok());
  const auto callable =
      session->MakeCallable({.feeds = {model.x.name()}, .fetches = {model.train.name()}});
  ASSERT_TRUE(callable.ok()) << callable.status();
  const Tensor one = Tensor::Vector<float>({1});
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(session->RunCallable(*callable, {}, {&one, 1}, &out, nullptr).ok());
    EXPECT_EQ(out[0].flat<float>()[0], i);
  }
  RunMetadata metadata;
  const Status traced = session->RunCallable(*callable, {.trace = true, .partition_graphs = true},
                                             {&one, 1}, &out, &metadata);
  ASSERT_TRUE(traced.ok()) << traced;
  EXPECT_EQ(metadata.step_stats.size(), 2);
  EXPECT_EQ(metadata.partition_graphs.size(), 2);
  EXPECT_TRUE(session->ReleaseCallable(*callable).ok());
}

}  // namespace
}  // namespace penstock

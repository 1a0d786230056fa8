// SPDX-License-Identifier: Apache-2.0
//
// Tests branches and loops across tasks: random programs whose nodes are spread over three
// tasks, and loops in real clusters.
#include <algorithm>
#include <memory>
#include <random>
#include <thread>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/testing/eventually.h"
#include "core/base/thread_pool.h"
#include "core/compiler/compile.h"
#include "core/runtime/testing/random_program.h"
#include "core/runtime/testing/test_flow.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using FlowValues = FlowBuilder::Values;

void Spread(Graph& graph, uint32_t seed, int tasks) {
  std::mt19937 random(seed);
  for (Node* node : graph.nodes()) {
    graph.set_requested_device(node, StrCat("/job:worker/task:", random() % tasks));
  }
}

std::vector<int64_t> Numbers(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> numbers;
  for (const Tensor& t : tensors) numbers.push_back(t.valid() ? t.scalar<int64_t>() : -1);
  return numbers;
}

// Three tasks in this process, with one device each, and without a network between them.
class Tasks {
 public:
  Tasks() {
    for (int i = 0; i < 3; ++i) {
      auto made =
          MakeDevices({.task = *DeviceName::Parse(StrCat("/job:worker/task:", i)), .gpus_max = 0});
      CHECK_OK(made.status());
      devices_.push_back(std::move(made->front()));
    }
  }

  // Compiles the step that the client asks for, and runs it once for each entry of `feeds`.
  void Run(
      const Graph& graph, int num_fetches, const std::vector<std::vector<int64_t>>& feeds,
      const std::function<void(size_t run, const Status&, const std::vector<Tensor>&)>& check) {
    CompileOptions options{
        .env = &Env::Real(), .threads = &threads_, .client_device = devices_[0]->info().name};
    for (int i = 0; i < 2; ++i) options.feeds.push_back({.node = StrCat("feed", i)});
    for (int i = 0; i < num_fetches; ++i) options.fetches.push_back({.node = StrCat("fetch", i)});
    std::vector<DeviceInfo> infos;
    for (const auto& device : devices_) infos.push_back(device->info());
    auto partitions = Compile(graph, infos, options);
    ASSERT_TRUE(partitions.ok()) << partitions.status();
    std::vector<std::unique_ptr<Executor>> executors;
    for (Partition& partition : *partitions) {
      const auto device = std::find_if(devices_.begin(), devices_.end(), [&](const auto& d) {
        return d->name() == partition.device;
      });
      auto executor = MakeExecutor(std::move(partition.graph), {.device = device->get(),
                                                                .threads = &threads_,
                                                                .env = &Env::Real(),
                                                                .timer = &DeadlineTimer::Real()});
      ASSERT_TRUE(executor.ok()) << executor.status();
      executors.push_back(*std::move(executor));
    }
    for (size_t run = 0; run < feeds.size(); ++run) {
      TestStep step(num_fetches, {Tensor::Scalar(feeds[run][0]), Tensor::Scalar(feeds[run][1])});
      step.deadline_ns = Env::Real().NowNanos() + int64_t{20'000'000'000};
      const Status status = RunAll(executors, step.Args());
      check(run, status, step.fetches);
    }
  }

 private:
  static Status RunAll(const std::vector<std::unique_ptr<Executor>>& executors,
                       const StepArgs& args) {
    Mutex mu;
    CondVar changed;
    size_t ended = 0;
    Status first;
    for (const auto& executor : executors) {
      executor->RunAsync(args, Done([&](const Status& status) {
                           MutexLock lock(mu);
                           if (first.ok()) first = status;
                           ++ended;
                           changed.NotifyAll();
                         }));
    }
    MutexLock lock(mu);
    while (ended < executors.size()) changed.Wait(mu);
    return first;
  }

  std::vector<std::unique_ptr<Device>> devices_;
  ThreadPool threads_{"test", 2};
};

TEST(SpreadLoopsTest, RandomProgramsHaveTheSameResults) {
  Tasks tasks;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const RandomProgram program(seed, {.async = 10});
    Graph graph = program.Build(FlowBuilder::kClient);
    Spread(graph, seed, 3);
    const std::vector<std::vector<int64_t>> feeds = {{0, 0}, {1, seed}, {2, 7}, {3, 3}};
    tasks.Run(graph, program.num_fetches(), feeds,
              [&](size_t run, const Status& status, const std::vector<Tensor>& fetches) {
                ASSERT_TRUE(status.ok()) << status;
                EXPECT_EQ(Numbers(fetches), program.Expected(feeds[run]));
              });
    if (HasFatalFailure()) return;
  }
}

class LoopsTest : public testing::Test {
 protected:
  static constexpr int kTasks = 3;
  static std::string Task(int i) { return StrCat("/job:worker/task:", i); }
  // Places nodes of these ops on the given tasks, and all other nodes on the first task.
  static void Place(Graph& graph, const std::map<std::string, int>& task_of_op) {
    for (Node* node : graph.nodes()) {
      const auto task = task_of_op.find(node->op_name());
      graph.set_requested_device(node, Task(task == task_of_op.end() ? 0 : task->second));
    }
  }
  Status Run(SessionInterface& session, const std::vector<int64_t>& feeds, int fetches,
             const RunOptions& options = {}) {
    Feeds fed;
    std::vector<std::string> names;
    for (size_t i = 0; i < feeds.size(); ++i) {
      fed.emplace_back(StrCat("feed", i, ":0"), Tensor::Scalar(feeds[i]));
    }
    for (int i = 0; i < fetches; ++i) names.push_back(StrCat("fetch", i, ":0"));
    return session.Run(options, fed, names, {}, &out, nullptr);
  }
  std::vector<Tensor> out;
};

TEST_F(LoopsTest, RandomProgramsOnACluster) {
  TestCluster cluster({{"worker", kTasks}});
  for (uint32_t seed = 500; seed < 515; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const RandomProgram program(seed, {.async = 10});
    Graph graph = program.Build(FlowBuilder::kClient);
    Spread(graph, seed, kTasks);
    auto session = cluster.NewSession();
    ASSERT_TRUE(session->Extend(graph).ok());
    for (const std::vector<int64_t>& feeds : {std::vector<int64_t>{0, 2}, {3, 5}, {1, 3}}) {
      const Status status = Run(*session, feeds, program.num_fetches());
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(Numbers(out), program.Expected(feeds));
    }
  }
  EXPECT_TRUE(cluster.Idle());
}

// A loop with its body on two tasks and its condition on a third: computes the sum of i for i <
// n, twice.
TEST_F(LoopsTest, ALoopOverThreeTasks) {
  FlowBuilder b(FlowBuilder::kClient);
  const auto results = b.For({"loop"}, b.Feed(0), {b.Sum("TestSum", {})}, [&](const FlowValues& v) {
    const Endpoint twice = b.Sum("TestSpin", {v[0], v[0]});
    return FlowValues{b.Sum("TestAsync", {v[1], twice})};
  });
  b.Fetch(results[0], 0);
  Graph graph = b.Take();
  Place(graph, {{"TestSpin", 1}, {"TestAsync", 2}});
  TestCluster cluster({{"worker", kTasks}});
  auto session = cluster.NewSession();
  ASSERT_TRUE(session->Extend(graph).ok());
  for (const int64_t n : {0, 1, 2, 100}) {
    const Status status = Run(*session, {n}, 1);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out[0].scalar<int64_t>(), n * (n - 1)) << n;
  }
  EXPECT_TRUE(cluster.Idle());

  // Values inside the loop can be neither fed nor fetched.
  for (const Node* node : graph.nodes()) {
    if (node->op_name() != "TestSpin") continue;
    const Status status = session->Run({}, {{"feed0:0", Tensor::Scalar<int64_t>(3)}},
                                       {node->name()}, {}, &out, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is inside the loop 'loop'"));
    const Feeds inside = {{"feed0:0", Tensor::Scalar<int64_t>(3)},
                          {node->name() + ":0", Tensor::Scalar<int64_t>(3)}};
    EXPECT_THAT(std::string(session->Run({}, inside, {"fetch0"}, {}, &out, nullptr).message()),
                HasSubstr("is inside the loop 'loop'"));
  }
}

// Waits until a step has begun on the task.
void AwaitStep(const Server& task) {
  EXPECT_TRUE(Eventually([&] { return task.counts().running_steps == 1; }));
}

// Waits until a loop of a step is in iteration `count` on some task. Reads the iterations from the
// tasks' reports.
void AwaitIteration(TestCluster& cluster, uint64_t count) {
  const auto arrived = [&] {
    const auto report = AskCluster(cluster.target());
    CHECK_OK(report.status());
    for (const auto& task : report->task()) {
      for (const auto& part : task.report().part()) {
        for (const auto& loop : part.loop()) {
          if (loop.iteration() >= count) return true;
        }
      }
    }
    return false;
  };
  EXPECT_TRUE(Eventually(arrived)) << "no loop comes to iteration " << count;
}

TEST_F(LoopsTest, AStoppedTaskEndsALoopThatUsesIt) {
  FlowBuilder b(FlowBuilder::kClient);
  const Endpoint one = b.Sum("TestSum", {}, {{"plus", 1}});
  const auto results = b.While(
      {"endless"}, {one}, [&](const FlowValues&) { return b.Call("TestOdd", {one}); },
      [&](const FlowValues& v) {
        return FlowValues{b.Sum("TestAsync", {b.Sum("TestSpin", {v[0]})})};
      });
  b.Fetch(results[0], 0);
  Graph graph = b.Take();
  Place(graph, {{"TestSpin", 1}, {"TestAsync", 2}});
  for (const int stopped : {1, 2}) {
    TestCluster cluster({{"worker", kTasks}});
    auto session = cluster.NewSession();
    ASSERT_TRUE(session->Extend(graph).ok());
    Status status;
    std::thread runner([&] { status = Run(*session, {}, 1); });
    for (int task = 0; task < kTasks; ++task) AwaitStep(cluster.server("worker", task));
    AwaitIteration(cluster, 100);
    cluster.Stop("worker", stopped);
    runner.join();
    EXPECT_THAT(status.code(), AnyOf(StatusCode::kUnavailable, StatusCode::kAborted)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("task:", stopped)));
    EXPECT_TRUE(cluster.Idle());
  }
}

TEST_F(LoopsTest, AnEndlessLoopEndsAtTheDeadline) {
  FlowBuilder b(FlowBuilder::kClient);
  const Endpoint one = b.Sum("TestSum", {}, {{"plus", 1}});
  b.Fetch(b.While(
              {"endless"}, {one}, [&](const FlowValues&) { return b.Call("TestOdd", {one}); },
              [&](const FlowValues& v) { return FlowValues{b.Sum("TestSpin", {v[0]})}; })[0],
          0);
  Graph graph = b.Take();
  Place(graph, {{"TestSpin", 1}});
  TestCluster cluster({{"worker", kTasks}});
  auto session = cluster.NewSession();
  ASSERT_TRUE(session->Extend(graph).ok());
  const Status status = Run(*session, {}, 1, {.timeout_ms = 300});
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_TRUE(cluster.Idle());
}

TEST_F(LoopsTest, ALoopWithoutLoopCondStaysOnOneDevice) {
  FlowBuilder b(FlowBuilder::kClient);
  const auto results = b.For({"loop"}, b.Feed(0), {b.Sum("TestSum", {})}, [&](const FlowValues& v) {
    return FlowValues{b.Sum("TestSpin", {v[1], v[0]})};
  });
  b.Fetch(results[0], 0);
  Graph graph = b.Take();
  for (Node* node : graph.nodes()) {
    if (node->op_name() != "LoopCond") continue;
    ASSERT_TRUE(graph.ReplaceUses({node, 0}, node->input(0)).ok());
  }
  TestCluster cluster({{"worker", 2}});
  for (const bool spread : {false, true}) {
    Place(graph, {{"TestSpin", spread ? 1 : 0}});
    auto session = cluster.NewSession();
    ASSERT_TRUE(session->Extend(graph).ok());
    const Status status = Run(*session, {4}, 1);
    if (spread) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("has no LoopCond"));
    } else {
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(out[0].scalar<int64_t>(), 6);
    }
  }
}

}  // namespace
}  // namespace penstock

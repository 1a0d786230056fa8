// SPDX-License-Identifier: Apache-2.0
//
// Tests clusters whose tasks are stopped, killed, frozen and restarted.
#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <thread>

#include "core/base/testing/eventually.h"
#include "core/graph/builder.h"
#include "core/runtime/testing/test_ops.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

extern char** environ;

namespace penstock {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr char kPs[] = "/job:ps/task:0";
constexpr char kWorker[] = "/job:worker/task:0";
constexpr int64_t kMillis = 1'000'000;

// Adds a loop that does not end: its condition and variable are on the worker, its body is on the
// device `body`.
Output EndlessLoop(GraphBuilder& g, const char* body) {
  const auto worker = g.DeviceScope(kWorker);
  const Output start =
      Call("Enter", {Constant(g, Tensor::Scalar(0.0f))}, {{"frame_name", "endless"}});
  const Output merged = CallN("Merge", {Outputs{start, start}})[0];
  const Output goes_on = Call("LoopCond", {Call("Equal", {merged, merged})});
  const Outputs sides = CallN("Switch", {merged, goes_on});
  Output next;
  {
    const auto there = g.DeviceScope(body);
    next = Call("AddV2", {sides[1], sides[1]});
  }
  const Output around = Call("NextIteration", {next});
  CHECK_OK(g.status());
  CHECK_OK(g.mutable_graph().SetInput(g.NodeOf(merged), 1, {g.NodeOf(around), 0}));
  return Call("Exit", {sides[0]});
}

// A graph for steps on the ps and the worker: one that ends, one that waits for ever on the ps, one
// that sends tensors back and forth between the two tasks for ever, and one that computes on the
// worker for ever.
struct Graphs {
  Graphs() {
    {
      const auto ps = g.DeviceScope(kPs);
      one = CallIn(g, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
      Call("Assign", {one, Constant(g, Tensor::Scalar(1.0f))});
      block = CallIn(g, "TestStall", {Outputs{}});
    }
    const auto worker = g.DeviceScope(kWorker);
    sum = one + 1.0;
    never = block + 1.0;
    alone = Call("Identity", {Constant(g, Tensor::Scalar(5.0f))});
    endless = EndlessLoop(g, kPs);
    endless_here = EndlessLoop(g, kWorker);
    CHECK_OK(g.status());
  }
  GraphBuilder g;
  Output one, block, sum, never, alone, endless, endless_here;
};

Status Fetch(SessionInterface& session, const Output& output, float* value = nullptr) {
  std::vector<Tensor> outputs;
  RETURN_IF_ERROR(session.Run({}, {}, {output.name()}, {}, &outputs, nullptr));
  if (value != nullptr) *value = outputs[0].scalar<float>();
  return OkStatus();
}

Status Init(SessionInterface& session, const Graphs& graphs) {
  std::vector<Tensor> none;
  RETURN_IF_ERROR(session.Extend(graphs.g.graph()));
  return session.Run({}, {}, {}, {"Assign"}, &none, nullptr);
}

TEST(FailureTest, AStoppedTaskEndsItsSteps) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  auto session = cluster.NewSession();
  Graphs graphs;
  ASSERT_TRUE(Init(*session, graphs).ok());
  Status status;
  std::thread runner([&] { status = Fetch(*session, graphs.never); });
  EXPECT_TRUE(AwaitStalled());
  cluster.Stop("ps", 0);
  runner.join();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:ps/replica:0/task:0"));
  EXPECT_TRUE(cluster.Idle());
  // Steps that do not use the lost task still work.
  EXPECT_TRUE(Fetch(*session, graphs.alone).ok());
  EXPECT_EQ(Fetch(*session, graphs.sum).code(), StatusCode::kUnavailable);
}

// The clients of a task's sessions may have been asked to end together with the task, and must be
// able to save their state first.
TEST(FailureTest, ATaskToldToEndStaysForTheSessionsThatUseIt) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  auto session = cluster.NewSession();
  Graphs graphs;
  ASSERT_TRUE(Init(*session, graphs).ok());
  ASSERT_TRUE(Fetch(*session, graphs.sum).ok());
  Server& ps = cluster.server("ps", 0);
  EXPECT_TRUE(ps.in_use());
  EXPECT_EQ(ps.DescribeRunning(), "");

  const int64_t begin = Env::Real().NowNanos();
  std::thread drain([&] { ps.Drain(60'000); });
  Status refused;
  EXPECT_TRUE(Eventually([&] {
    refused = cluster.NewSession()->Extend(graphs.g.graph());
    return !refused.ok();
  }));
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/job:ps/replica:0/task:0 at "));
  EXPECT_THAT(std::string(refused.message()), HasSubstr(" is shutting down"));
  EXPECT_TRUE(Fetch(*session, graphs.sum).ok()) << "a session that there was goes on";
  EXPECT_TRUE(session->Close().ok());
  drain.join();
  EXPECT_LT(Env::Real().NowNanos() - begin, 30'000 * kMillis) << "and is not waited for any more";
  EXPECT_FALSE(ps.in_use());
}

TEST(FailureTest, ATaskToldToEndEndsWhenItsGraceIsOver) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  auto session = cluster.NewSession();
  Graphs graphs;
  ASSERT_TRUE(Init(*session, graphs).ok());
  Status status;
  std::thread runner([&] { status = Fetch(*session, graphs.never); });
  Server& ps = cluster.server("ps", 0);
  EXPECT_TRUE(AwaitStalled());
  EXPECT_THAT(ps.DescribeRunning(), HasSubstr("step "));
  ps.Drain(50);
  EXPECT_TRUE(ps.in_use());
  cluster.Stop("ps", 0);
  runner.join();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
}

TEST(FailureTest, ARestartedTaskIsAnother) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  auto session = cluster.NewSession();
  Graphs graphs;
  ASSERT_TRUE(Init(*session, graphs).ok());
  ASSERT_TRUE(Fetch(*session, graphs.sum).ok());
  cluster.Restart("ps", 0);
  Status status = Fetch(*session, graphs.sum);
  EXPECT_THAT(status.code(), AnyOf(StatusCode::kAborted, StatusCode::kUnavailable)) << status;
  EXPECT_TRUE(Eventually([&] {
    status = Fetch(*session, graphs.sum);
    return absl::IsAborted(status);
  })) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has restarted"));
  // A new session can use the restarted task.
  auto later = cluster.NewSession();
  ASSERT_TRUE(Init(*later, graphs).ok());
  float value = 0;
  ASSERT_TRUE(Fetch(*later, graphs.sum, &value).ok());
  EXPECT_EQ(value, 2);
}

TEST(FailureTest, ARestartedMasterDoesNotKnowTheSession) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  auto session = cluster.NewSession();
  Graphs graphs;
  ASSERT_TRUE(Init(*session, graphs).ok());
  cluster.Restart("worker", 0);
  Status status;
  ASSERT_TRUE(Eventually([&] {  // fails until the session connects again
    status = Fetch(*session, graphs.sum);
    return !absl::IsUnavailable(status);
  })) << status;
  EXPECT_EQ(status.code(), StatusCode::kAborted) << status;
  // The ps has kept the variable.
  auto later = cluster.NewSession();
  ASSERT_TRUE(later->Extend(graphs.g.graph()).ok());
  EXPECT_TRUE(Fetch(*later, graphs.sum).ok());
}

TEST(FailureTest, AServerThatIsNotThereIsNamed) {
  auto session = *NewRemoteSession("grpc://127.0.0.1:1", {.operation_timeout_ms = 100});
  const Status status = session->Extend(Graphs().g.graph());
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("grpc://127.0.0.1:1: no server answers there"));
}

// Sessions of clients in the master's process outlive the master, and report that it is gone.
TEST(FailureTest, AStoppedMasterOfThisProcess) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}}, TestCluster::Direct());
  auto session = cluster.NewSession();
  Graphs graphs;
  ASSERT_TRUE(Init(*session, graphs).ok());
  Status status;
  std::thread runner([&] { status = Fetch(*session, graphs.never); });
  EXPECT_TRUE(AwaitStalled());
  cluster.Stop("worker", 0);
  runner.join();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  status = Fetch(*session, graphs.sum);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has been stopped"));
}

TEST(FailureTest, ASessionNamesTheTasksThatDoNotAnswer) {
  TestCluster cluster({{"ps", 2}, {"worker", 1}});
  cluster.Stop("ps", 1);
  auto session = cluster.NewSession({.operation_timeout_ms = 500});
  Graphs graphs;
  const Status status = session->Extend(graphs.g.graph());
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:ps/replica:0/task:1"));
  auto without = cluster.NewSession({.device_filters = {"/job:ps/task:0"}});
  EXPECT_TRUE(Init(*without, graphs).ok());
}

TEST(FailureTest, AThousandAbortedStepsLeaveNothing) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  auto session = cluster.NewSession();
  GraphBuilder g;
  Output fail, y;
  {
    const auto ps = g.DeviceScope(kPs);
    fail = CallIn(g, "TestFail", {Outputs{}});
  }
  {
    const auto worker = g.DeviceScope(kWorker);
    y = fail + 1.0;
  }
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  const auto fds = [] {
    int count = 0;
    DIR* const dir = opendir("/proc/self/fd");
    while (readdir(dir) != nullptr) ++count;
    closedir(dir);
    return count;
  };
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Fetch(*session, y).ok());
  const int before = fds();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(Fetch(*session, y).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(cluster.Idle());
  EXPECT_LE(fds(), before);
}

// Runs each task in a process of its own, which the test can kill.
class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    // Finds ports that were free a moment ago.
    std::vector<std::unique_ptr<Server>> servers;
    for (std::string* address : {&ps_, &worker_}) {
      ServerOptions options;
      options.task = {.job = "ps"};
      CHECK_OK(options.task.cluster.AddTask("ps", 0, "127.0.0.1:0"));
      servers.push_back(*Server::Create(options));
      *address = servers.back()->address();
    }
  }
  void TearDown() override {
    for (const pid_t pid : pids_) {
      kill(pid, SIGCONT);
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  pid_t Spawn(const std::string& job) {
    std::string program = "distributed/testing/test_task", index = "0", job_name = job;
    std::string ps = ps_, worker = worker_;
    char* argv[] = {program.data(),  ps.data(),    worker.data(),
                    job_name.data(), index.data(), nullptr};
    pid_t pid = 0;
    CHECK(posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv, environ) == 0);
    pids_.push_back(pid);
    return pid;
  }
  void Kill(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pids_.erase(std::find(pids_.begin(), pids_.end(), pid));
  }
  std::unique_ptr<SessionInterface> NewSession() {
    return *NewRemoteSession(StrCat("grpc://", worker_), {});
  }
  // Returns whether a step has begun on the ps.
  bool StepBegunOnPs() {
    const auto report = AskCluster(worker_);
    CHECK_OK(report.status());
    for (const wire::ClusterTask& task : report->task()) {
      if (task.name() == "/job:ps/replica:0/task:0") return task.report().part_size() > 0;
    }
    return false;
  }
  // Runs a step whose fetch never comes, and calls `fault` while it runs. Stores the time from
  // the fault to the step's end in `*ms`, and returns the step's status.
  Status TimeToFail(const Output& never, const std::function<void()>& fault, int64_t* ms) {
    Status status;
    int64_t end = 0;
    std::thread runner([&] {
      status = Fetch(*session_, never);
      end = Env::Real().NowNanos();
    });
    EXPECT_TRUE(Eventually([this] { return StepBegunOnPs(); }));
    const int64_t begin = Env::Real().NowNanos();
    fault();
    runner.join();
    *ms = (end - begin) / kMillis;
    return status;
  }
  // Starts a ps, a worker and a session that uses both.
  void Begin() {
    ps_process_ = Spawn("ps");
    worker_process_ = Spawn("worker");
    session_ = NewSession();
    const Status status = Init(*session_, graphs_);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string ps_, worker_;
  std::vector<pid_t> pids_;
  pid_t ps_process_ = 0, worker_process_ = 0;
  const Graphs graphs_;
  std::unique_ptr<SessionInterface> session_;
};

TEST_F(ProcessTest, AKilledTaskIsNoticedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  int64_t ms = 0;
  const Status status = TimeToFail(
      graphs_.never, [&] { Kill(ps_process_); }, &ms);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:ps/replica:0/task:0 at " + ps_));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; step "));
  EXPECT_LT(ms, 1000);
  // Training continues with the ps that replaces the killed one.
  Spawn("ps");
  Status again;
  EXPECT_TRUE(Eventually([&] {
    auto later = NewSession();
    again = Init(*later, graphs_);
    if (again.ok()) again = Fetch(*later, graphs_.sum);
    return again.ok();
  })) << again;
}

TEST_F(ProcessTest, AKilledTaskEndsALoopThatUsesIt) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  int64_t ms = 0;
  const Status status = TimeToFail(
      graphs_.endless, [&] { Kill(ps_process_); }, &ms);
  EXPECT_THAT(status.code(), AnyOf(StatusCode::kUnavailable, StatusCode::kAborted)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:ps/replica:0/task:0"));
  EXPECT_LT(ms, 1000);
  float five = 0;
  const Status again = Fetch(*session_, graphs_.alone, &five);
  EXPECT_TRUE(again.ok()) << again << ": the worker is free of the loop";
  EXPECT_EQ(five, 5);
}

// More endless steps than the worker has threads. On an idle machine each answer takes some
// milliseconds; the limit is for a busy one.
TEST_F(ProcessTest, EndlessLoopsKeepNobodyWaiting) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  constexpr int kLoops = 8;
  std::vector<std::unique_ptr<SessionInterface>> sessions;
  std::vector<std::thread> loops;
  std::vector<Status> ends(kLoops);
  for (int i = 0; i < kLoops; ++i) {
    sessions.push_back(NewSession());
    ASSERT_EQ(sessions[i]->Extend(graphs_.g.graph()), OkStatus());
  }
  for (int i = 0; i < kLoops; ++i) {
    loops.emplace_back([&, i] { ends[i] = Fetch(*sessions[i], graphs_.endless_here); });
  }
  EXPECT_TRUE(Eventually([&] {
    const auto report = AskCluster(worker_);
    if (!report.ok()) return false;
    size_t parts = 0;
    for (const wire::ClusterTask& task : report->task()) parts += task.report().part_size();
    return parts >= kLoops;
  }));
  const auto milliseconds = [](const char* what, const std::function<void()>& run) {
    const int64_t begin = Env::Real().NowNanos();
    run();
    const int64_t ms = (Env::Real().NowNanos() - begin) / kMillis;
    std::printf("%s: %d ms\n", what, static_cast<int>(ms));
    EXPECT_LT(ms, 30'000) << what;
  };
  std::unique_ptr<SessionInterface> other;
  milliseconds("a status report", [&] { EXPECT_TRUE(AskCluster(worker_).ok()); });
  milliseconds("a new session", [&] {
    other = NewSession();
    EXPECT_EQ(other->Extend(graphs_.g.graph()), OkStatus());
  });
  milliseconds("a step", [&] { EXPECT_EQ(Fetch(*other, graphs_.alone), OkStatus()); });
  milliseconds("the cancellation of all loops", [&] {
    for (const auto& session : sessions) EXPECT_EQ(session->Close(), OkStatus());
    for (std::thread& loop : loops) loop.join();
  });
  for (const Status& end : ends) EXPECT_EQ(end.code(), StatusCode::kCancelled) << end;
}

TEST_F(ProcessTest, AFrozenTaskIsNoticed) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  int64_t ms = 0;
  const Status status = TimeToFail(
      graphs_.never, [&] { kill(ps_process_, SIGSTOP); }, &ms);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:ps/replica:0/task:0 at "));
  EXPECT_LT(ms, 2500);
  // The frozen process continues, in the same incarnation.
  kill(ps_process_, SIGCONT);
  Status again;
  EXPECT_TRUE(Eventually([&] {
    again = Fetch(*session_, graphs_.sum);
    return again.ok();
  })) << again;
}

TEST_F(ProcessTest, AKilledMasterEndsTheStepsOfItsClients) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  int64_t ms = 0;
  const Status status = TimeToFail(
      graphs_.never, [&] { Kill(worker_process_); }, &ms);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(StrCat("the master /job:worker/replica:0/task:0 at grpc://", worker_,
                               ", running a step of '", graphs_.never.name(), "': ")));
  EXPECT_LT(ms, 1000);
  EXPECT_TRUE(ShutdownTask(ps_, "end of test", 2000).ok());
  int exit_status = -1;
  EXPECT_EQ(waitpid(ps_process_, &exit_status, 0), ps_process_);
  EXPECT_TRUE(WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0) << exit_status;
  pids_.erase(std::find(pids_.begin(), pids_.end(), ps_process_));
}

}  // namespace
}  // namespace penstock

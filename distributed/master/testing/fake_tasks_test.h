// SPDX-License-Identifier: Apache-2.0
//
// FakeTasksTest: the fixture for tests of a session with two fake tasks, on a simulated clock:
// "worker", the master's own, and "ps". Its graph has the NoOps "here" (on the worker), "there"
// (on the ps) and "both" (on the worker, after "there"), and the placeholder "fed", a float scalar
// on the worker.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/builder.h"
#include "core/runtime/testing/sim_test.h"
#include "distributed/master/master_session.h"
#include "distributed/worker/testing/fake_worker_client.h"

namespace penstock {

class FakeTasksTest : public SimTest {
 protected:
  static constexpr char kWorker[] = "/job:worker/replica:0/task:0";
  static constexpr char kPs[] = "/job:ps/replica:0/task:0";

  FakeTasksTest() {
    for (const std::string task : {kWorker, kPs}) {
      auto name = DeviceName::Parse(task + "/device:CPU:0");
      CHECK_OK(name.status());
      tasks_.push_back({.id = {.name = task, .address = "a:1", .incarnation = tasks_.size() + 1},
                        .client = task == kWorker ? worker_ : ps_,
                        .devices = {{.name = *name, .incarnation = tasks_.size() + 1}}});
    }
  }

  StatusOr<std::shared_ptr<MasterSession>> Create(const SessionOptions& options) {
    return MasterSession::Create(
        {.handle = "s",
         .session = options,
         .tasks = tasks_,
         .services = {.env = &env_, .timer = timer_.get(), .threads = &scheduler_},
         .registry = &Registry::Global(),
         .counters = counters_});
  }
  // Runs `body` with `session_`, and closes the session after it.
  void InSession(const std::function<void()>& body, const SessionOptions& options = {}) {
    Simulate([&] {
      auto session = Create(options);
      ASSERT_TRUE(session.ok()) << session.status();
      session_ = *std::move(session);
      ASSERT_TRUE(session_->Extend(0, Whole).ok());
      body();
      EXPECT_EQ(session_->Close(), OkStatus());
      session_ = nullptr;
    });
  }
  // Builds the fixture's graph.
  static Status Whole(Graph* graph) {
    GraphBuilder g;
    {
      const auto worker = g.DeviceScope(kWorker);
      CallIn(g, "NoOp", {}, {}, "here");
      CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}}, "fed");
    }
    const auto there = [&] {
      const auto ps = g.DeviceScope(kPs);
      return CallIn(g, "NoOp", {}, {}, "there");
    }();
    const auto worker = g.DeviceScope(kWorker);
    const auto after = g.ControlDependencies({there});
    CallIn(g, "NoOp", {}, {}, "both");
    RETURN_IF_ERROR(g.status());
    *graph = g.graph().Clone();
    return OkStatus();
  }

  // A step that runs until the test calls EndStep.
  struct Running {
    MasterSession::AsyncRun run;
    std::optional<Status> ended;
  };
  std::shared_ptr<Running> Begin(const std::vector<std::string>& targets,
                                 const RunOptions& options = {}) {
    auto running = std::make_shared<Running>();
    running->run.options = options;
    running->run.targets = targets;
    session_->RunAsync(&running->run,
                       Done([running](const Status& status) { running->ended = status; }));
    Pass(1);  // lets the pool prepare the step
    return running;
  }
  // Ends the last step that `client` was told to run.
  static void End(FakeWorkerClient& client, const Status& status = OkStatus()) {
    ASSERT_FALSE(client.run_calls.empty());
    client.EndStep(client.run_calls.back().args.step_id, status);
  }

  const std::shared_ptr<FakeWorkerClient> worker_ = std::make_shared<FakeWorkerClient>();
  const std::shared_ptr<FakeWorkerClient> ps_ = std::make_shared<FakeWorkerClient>();
  const std::shared_ptr<StepCounters> counters_ = std::make_shared<StepCounters>();
  std::vector<SessionTask> tasks_;
  std::shared_ptr<MasterSession> session_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// TestWorker: for tests, the worker of "/job:ps/replica:0/task:0" at "here:1", in its incarnation
// 5, with the ops of core/runtime/testing/test_ops.h.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/join.h"
#include "core/runtime/testing/test_ops.h"
#include "distributed/worker/worker.h"

namespace penstock {

class TestWorker {
 public:
  static constexpr char kTask[] = "/job:ps/replica:0/task:0";
  static constexpr char kDevice[] = "/job:ps/replica:0/task:0/device:CPU:0";
  static constexpr char kName[] = "/job:ps/replica:0/task:0 at here:1";  // name in errors
  static constexpr uint64_t kIncarnation = 5;

  TestWorker(Env& env, Scheduler& threads, DeadlineTimer& timer)
      : threads_(threads), worker_(Options(env, threads, timer)) {}

  Worker& operator*() { return worker_; }
  Worker* operator->() { return &worker_; }

  void Begin(const std::string& session, WorkerSessionOptions options = {}) {
    options.handle = session;
    CHECK_OK(worker_.CreateSession(options));
  }
  static std::vector<Partition> OnCpu(Graph graph) {
    std::vector<Partition> partitions;
    partitions.push_back({kDevice, std::move(graph)});
    return partitions;
  }
  // Returns a graph whose fetch 0 is feed 0 plus one.
  static std::vector<Partition> PlusOne() {
    TestGraph g;
    g.Fetch(g.AddSum("TestSum", {g.Feed(0)}, {{"plus", 1}}), 0);
    return OnCpu(g.Take());
  }
  // Returns a graph that runs until it is cancelled.
  static std::vector<Partition> Stall() {
    TestGraph g;
    g.AddSum("TestStall", {});
    return OnCpu(g.Take());
  }

  struct Ran {
    Status status;
    int64_t value = 0;
  };
  // Runs a step of a graph like PlusOne.
  Ran Run(const std::string& session, uint64_t graph, int64_t step_id, int64_t fed = 41) {
    const Tensor feed = Tensor::Scalar<int64_t>(fed);
    Tensor fetch;
    Wait wait(threads_, "a step");
    worker_.RunGraph({.session = session,
                      .graph = graph,
                      .step_id = step_id,
                      .feeds = &feed,
                      .num_feeds = 1,
                      .fetches = &fetch,
                      .num_fetches = 1},
                     wait.done());
    Ran ran{.status = wait.Get()};
    if (ran.status.ok() && fetch.valid()) ran.value = fetch.scalar<int64_t>();
    return ran;
  }
  // Returns (container, name) of all resources of the device.
  std::vector<std::pair<std::string, std::string>> Held() { return device_->resources().List(); }

 private:
  Worker::Options Options(Env& env, Scheduler& threads, DeadlineTimer& timer) {
    auto devices = MakeDevices({.task = *DeviceName::Parse(kTask), .gpus_max = 0});
    CHECK_OK(devices.status());
    device_ = devices->front().get();
    return {.self = {.name = kTask, .address = "here:1", .incarnation = kIncarnation},
            .devices = *std::move(devices),
            .threads = &threads,
            .env = &env,
            .timer = &timer};
  }

  Scheduler& threads_;
  Device* device_ = nullptr;
  Worker worker_;
};

}  // namespace penstock

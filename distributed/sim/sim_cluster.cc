// SPDX-License-Identifier: Apache-2.0
#include "distributed/sim/sim_cluster.h"

#include <utility>

#include "core/op/registry.h"

namespace penstock {

SimCluster::SimCluster(SimScheduler& scheduler, Env& env, const std::map<std::string, int>& jobs,
                       const SimNetwork::Options& options, int64_t task_bytes)
    : scheduler_(scheduler),
      env_(env),
      timer_(NewThreadTimer(env, scheduler)),
      network_(scheduler, env, *timer_, options),
      task_bytes_(task_bytes) {
  for (const auto& [job, count] : jobs) {
    for (int i = 0; i < count; ++i) CHECK_OK(spec_.AddTask(job, i, StrCat(job, "-", i, ":2222")));
  }
  for (const auto& [job, count] : jobs) {
    for (int i = 0; i < count; ++i) AddTask(job, i);
  }
}

void SimCluster::AddTask(const std::string& job, int index) {
  const DeviceName name{.job = job, .replica = 0, .task = index};
  std::unique_ptr<Transport>& transport = transports_[{job, index}];
  transport = network_.NewTransport();
  MemoryAccountPtr& account = accounts_[{job, index}];
  account = NewSimMemory(name.ToString(), task_bytes_);
  Task::Parts parts{.self = {.name = name.ToString(),
                             .address = spec_.Address(job, index),
                             .incarnation = env_.RandomU64() | 1},
                    .env = &env_,
                    .scheduler = &scheduler_,
                    .timer = timer_.get(),
                    .registry = &Registry::Global(),
                    .transport = transport.get(),
                    .account = account.get()};
  parts.connect = network_.Connector(parts.self);
  auto devices = MakeDevices({.task = name,
                              .incarnation = parts.self.incarnation,
                              .gpus_max = 0,
                              .memory_limit = task_bytes_});
  CHECK_OK(devices.status());
  parts.devices = *std::move(devices);
  auto task = std::make_unique<Task>(std::move(parts));
  CHECK_OK(task->Start(spec_));
  network_.Add(*task);
  tasks_[{job, index}] = std::move(task);
}

SimCluster::~SimCluster() {
  for (auto& [name, task] : tasks_) {
    task->Stop();
    transports_[name]->Stop();
  }
  for (auto& [name, task] : tasks_) network_.Remove(*task);
  // The clock advances only when nothing is left to run, so the closures of the tasks
  // have ended after this.
  scheduler_.SleepUntil(scheduler_.now_ns() + 1);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/sim/sim_network.h"

#include <utility>

#include "core/base/join.h"

namespace penstock {

SimNetwork::SimNetwork(SimScheduler& scheduler, Env& env, DeadlineTimer& timer,
                       const Options& options)
    : scheduler_(scheduler),
      env_(env),
      timer_(timer),
      options_(options),
      start_ns_(scheduler.now_ns()),
      arrived_(scheduler, "messages to arrive") {}

SimNetwork::~SimNetwork() {
  MutexLock lock(mu_);
  arrived_.Wait(mu_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return under_way_ == 0; });
}

void SimNetwork::Add(Task& task) {
  CHECK(tasks_.emplace(task.self().address, &task).second, "two tasks at ", task.self().address);
}

void SimNetwork::Remove(const Task& task) { tasks_.erase(task.self().address); }

Task* SimNetwork::Find(const std::string& address, uint64_t incarnation) {
  const auto found = tasks_.find(address);
  if (found == tasks_.end()) return nullptr;
  Task* const task = found->second;
  return incarnation == 0 || task->self().incarnation == incarnation ? task : nullptr;
}

void SimNetwork::Log(const std::string& text) {
  StrAppend(&log_, (scheduler_.now_ns() - start_ns_) / 1'000, " us  ", text, "\n");
}

void SimNetwork::Send(const std::string& from, const std::string& to, const std::string& what,
                      Scheduler::Closure arrive) {
  const auto range = static_cast<uint64_t>(options_.delay_max_ns - options_.delay_min_ns + 1);
  const auto delay = static_cast<int64_t>(scheduler_.Random() % range) + options_.delay_min_ns;
  {
    MutexLock lock(mu_);
    ++under_way_;
  }
  scheduler_.ScheduleAt(
      scheduler_.now_ns() + delay,
      [this, line = StrCat(from, " -> ", to, "  ", what), arrive = std::move(arrive)]() mutable {
        Log(line);
        std::move(arrive)();
        arrive = nullptr;
        MutexLock lock(mu_);
        if (--under_way_ == 0) arrived_.NotifyAll();
      });
}

void SimNetwork::Travel(const std::string& from, const std::string& to, const std::string& what) {
  Wait wait(scheduler_, "a message to arrive");
  Send(from, to, what, [done = wait.done()]() mutable { std::move(done)(OkStatus()); });
  CHECK_OK(wait.Get());
}

std::unique_ptr<Transport> SimNetwork::NewTransport() { return NewSimTransport(*this); }

std::function<std::shared_ptr<WorkerClient>(const TaskId&)> SimNetwork::Connector(
    const TaskId& self) {
  return [this, self](const TaskId& task) { return NewSimWorkerClient(*this, self, task); };
}

std::unique_ptr<SessionInterface> SimNetwork::NewSession(const std::string& client, Task& task,
                                                         const SessionOptions& options) {
  return NewSimSession(*this, client, task.self().name, task.NewSession(options));
}

}  // namespace penstock

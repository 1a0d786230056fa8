// SPDX-License-Identifier: Apache-2.0
//
// SimNetwork: the network between tasks that are simulated in one thread. Each message takes a time
// of its own on the simulated clock, drawn from the scheduler's seed, so that messages overtake
// each other as the seed decides. Everything that arrives is a line of the log: two runs with one
// seed have the same log, byte for byte.
//
//   SimNetwork network(scheduler, env, timer, {});
//   const auto transport = network.NewTransport();
//   Task task({..., .transport = transport.get(), .connect = network.Connector(self)});
//   CHECK_OK(task.Start(cluster));
//   network.Add(task);
//   auto session = network.NewSession("client", task, {});
//
// One thread uses it. A call of a task that was removed ends with Unavailable; one of a task that
// was replaced by another incarnation, with Aborted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/task/task.h"

namespace penstock {

class SimNetwork {
 public:
  struct Options {
    // The time that a message takes.
    int64_t delay_min_ns = 50'000;
    int64_t delay_max_ns = 2'000'000;
  };
  // All are borrowed; `env` and `timer` go by the scheduler's clock.
  SimNetwork(SimScheduler& scheduler, Env& env, DeadlineTimer& timer, const Options& options);
  // Waits until all that was sent has arrived.
  ~SimNetwork();

  // Lets others reach the task at its address. Borrowed until Remove.
  void Add(Task& task);
  void Remove(const Task& task);
  // Null where no such task is there, in this incarnation (0: whichever).
  Task* Find(const std::string& address, uint64_t incarnation);

  // Runs `arrive` after the time that a message takes. `from` and `to` name the two ends and `what`
  // the message, in the log.
  void Send(const std::string& from, const std::string& to, const std::string& what,
            Scheduler::Closure arrive);
  // As Send, returning on arrival.
  void Travel(const std::string& from, const std::string& to, const std::string& what);
  // Adds a line, "MICROSECONDS us  TEXT".
  void Log(const std::string& text);
  const std::string& log() const { return log_; }

  // For Task::Parts.
  std::unique_ptr<Transport> NewTransport();
  std::function<std::shared_ptr<WorkerClient>(const TaskId&)> Connector(const TaskId& self);

  // A session of `client`, a name for the log, with the master of `task`, which is borrowed.
  std::unique_ptr<SessionInterface> NewSession(const std::string& client, Task& task,
                                               const SessionOptions& options);

  SimScheduler& scheduler() { return scheduler_; }
  Env& env() { return env_; }
  DeadlineTimer& timer() { return timer_; }

 private:
  SimScheduler& scheduler_;
  Env& env_;
  DeadlineTimer& timer_;
  const Options options_;
  const int64_t start_ns_;
  std::map<std::string, Task*> tasks_;  // by address
  std::string log_;
  Mutex mu_;
  Condition arrived_;
  int64_t under_way_ ABSL_GUARDED_BY(mu_) = 0;  // messages
};

// The three roads of a network; SimNetwork makes them.
std::unique_ptr<Transport> NewSimTransport(SimNetwork& network);
std::shared_ptr<WorkerClient> NewSimWorkerClient(SimNetwork& network, const TaskId& self,
                                                 const TaskId& task);
std::unique_ptr<SessionInterface> NewSimSession(SimNetwork& network, const std::string& client,
                                                const std::string& master,
                                                std::unique_ptr<SessionInterface> session);

}  // namespace penstock

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
//   auto session = network.NewSession({"client"}, task.self(), {});
//
// Faults behave as gRPC's connections do. A message that is lost takes its connection with it: all
// calls and subscriptions between the two hosts end with Unavailable. So they do if a host is
// silent for longer than the keepalive time. A call of a task that was removed ends with
// Unavailable; one of a task that was replaced by another incarnation, with Aborted. What a process
// sends after its death is dropped.
//
// One thread uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/task/task.h"

namespace penstock {

// One process on the network.
struct SimEnd {
  std::string host;
  uint64_t incarnation = 0;  // 0: it never counts as dead

  // The host of a task is its address without the port.
  static SimEnd Of(const TaskId& task) {
    return {task.address.substr(0, task.address.find(':')), task.incarnation};
  }
};

class SimNetwork {
 public:
  struct Options {
    // The time that a message takes.
    int64_t delay_min_ns = 50'000;
    int64_t delay_max_ns = 2'000'000;
    // A host that is silent for so long has lost its connections.
    int64_t keepalive_ns = 2'000'000'000;
  };
  // All are borrowed; `env` and `timer` go by the scheduler's clock.
  SimNetwork(SimScheduler& scheduler, Env& env, DeadlineTimer& timer, const Options& options);
  // Waits until all that was sent has arrived.
  ~SimNetwork();

  // Lets others reach the task at its address. Borrowed until Remove.
  void Add(Task& task);
  void Remove(const Task& task);
  // Null where no such task is there, in this incarnation (0: whichever).
  Task* Find(const std::string& address, uint64_t incarnation) const;

  // Runs `arrive` after the time that a message takes, or drops it. `what` names the message in the
  // log.
  void Send(const SimEnd& from, const SimEnd& to, const std::string& what,
            Scheduler::Closure arrive);
  // Adds a line, "MICROSECONDS us  TEXT".
  void Log(const std::string& text);
  const std::string& log() const { return log_; }

  // Calls `broken`, once, when a connection between the two hosts breaks.
  using Broken = std::function<void(const std::string& why)>;
  uint64_t Watch(const SimEnd& a, const SimEnd& b, Broken broken);
  void Unwatch(uint64_t watch) { watches_.erase(watch); }

  // Faults. What is blocked arrives after `until_ns`, or not at all.
  void Block(const std::string& from, const std::string& to, int64_t until_ns);
  void Freeze(const std::string& host, int64_t until_ns);
  void Break(const std::string& a, const std::string& b, const std::string& why);
  // The process is dead from now on. `silent`: with its host, so that nobody is told.
  void Kill(const SimEnd& end, bool silent);
  // The host is up again.
  void Boot(const std::string& host) { down_.erase(host); }
  bool IsDead(const SimEnd& end) const { return dead_.count({end.host, end.incarnation}) != 0; }
  // Until then one message in so many is lost, or a call's request is sent twice (0: none), and
  // messages take so many times as long.
  struct Weather {
    int64_t until_ns = 0;
    int lose_one_in = 0, repeat_one_in = 0, slowness = 1;
  };
  void set_weather(const Weather& weather) { weather_ = weather; }
  bool Repeats();

  // Notes that a step begins in a task: each may do so once.
  void NoteStep(const TaskId& task, int64_t step_id);
  const std::vector<std::string>& repeated_steps() const { return repeated_steps_; }

  // For Task::Parts.
  std::unique_ptr<Transport> NewTransport();
  std::function<std::shared_ptr<WorkerClient>(const TaskId&)> Connector(const TaskId& self);

  // A session of `client` with the master of `task`.
  std::unique_ptr<SessionInterface> NewSession(const SimEnd& client, const TaskId& task,
                                               const SessionOptions& options);

  SimScheduler& scheduler() { return scheduler_; }
  Env& env() { return env_; }
  DeadlineTimer& timer() { return timer_; }

 private:
  struct Watched {
    std::string a, b;
    Broken broken;
  };
  uint64_t Below(uint64_t n) { return scheduler_.Random() % n; }
  bool has_weather() const { return scheduler_.now_ns() < weather_.until_ns; }
  int64_t DrawDelay();
  int64_t BlockedUntil(const std::string& from, const std::string& to) const;
  void Lose(const std::string& from, const std::string& to, int64_t notice_ns, const char* why);
  // Breaks the connections of the hosts `a` and `b` then; "" is any host.
  void BreakAt(int64_t at_ns, const std::string& a, const std::string& b, const char* why);
  void Deliver(int64_t at_ns, std::string line, Scheduler::Closure arrive);

  SimScheduler& scheduler_;
  Env& env_;
  DeadlineTimer& timer_;
  const Options options_;
  const int64_t start_ns_;
  std::map<std::string, Task*> tasks_;  // by address
  std::string log_;
  std::map<uint64_t, Watched> watches_;
  uint64_t next_watch_ = 0;
  Weather weather_;
  std::map<std::pair<std::string, std::string>, int64_t> blocked_;
  std::map<std::string, int64_t> frozen_;
  std::set<std::string> down_;
  std::set<std::pair<std::string, uint64_t>> dead_;
  std::set<std::pair<uint64_t, int64_t>> steps_;  // by incarnation
  std::vector<std::string> repeated_steps_;
  Mutex mu_;
  Condition arrived_;
  int64_t under_way_ ABSL_GUARDED_BY(mu_) = 0;  // messages
};

// The three roads of a network; SimNetwork makes them.
std::unique_ptr<Transport> NewSimTransport(SimNetwork& network);
std::shared_ptr<WorkerClient> NewSimWorkerClient(SimNetwork& network, const TaskId& self,
                                                 const TaskId& task);
std::unique_ptr<SessionInterface> NewSimSession(SimNetwork& network, const SimEnd& client,
                                                const TaskId& master,
                                                const SessionOptions& options);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// SimNetwork: the network between tasks that are simulated in one thread. Each message takes a
// random time on the simulated clock, drawn from the scheduler's seed, so that the seed decides
// which messages overtake others. Each arrival is a line of the log: two runs with the same seed
// have the same log, byte for byte.
//
//   SimNetwork network(scheduler, env, timer, {});
//   const auto transport = network.NewTransport();
//   Task task({..., .transport = transport.get(), .connect = network.Connector(self)});
//   CHECK_OK(task.Start(cluster));
//   network.Add(task);
//   auto session = network.NewSession({"client"}, task.self(), {});
//
// Faults have the same effects as with gRPC's connections. The loss of a message breaks its
// connection: all calls and subscriptions between the two hosts end with Unavailable. The same
// happens if a host is silent for longer than the keepalive time. A call to a task that was removed
// ends with Unavailable; a call to a task that was replaced by another incarnation, with Aborted.
// Messages that a process sends after its death are dropped.
//
// Used by one thread only.
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
#include "distributed/transport/transport.h"

namespace penstock {

// One process on the network.
struct SimEnd {
  std::string host;
  uint64_t incarnation = 0;  // 0: the network never treats this process as dead

  // Returns the process of a task. Its host is the task's address without the port.
  static SimEnd Of(const TaskId& task) {
    return {task.address.substr(0, task.address.find(':')), task.incarnation};
  }
};

class SimNetwork {
 public:
  struct Options {
    // The bounds of a message's random delay.
    int64_t delay_min_ns = 50'000;
    int64_t delay_max_ns = 2'000'000;
    // A host that is silent for this long loses its connections.
    int64_t keepalive_ns = 2'000'000'000;
  };
  // Borrows all arguments; `env` and `timer` use the scheduler's clock.
  SimNetwork(SimScheduler& scheduler, Env& env, DeadlineTimer& timer, const Options& options);
  // Waits until all messages that were sent have arrived.
  ~SimNetwork();

  // Makes the task reachable at its address. Borrowed until Remove.
  void Add(Task& task);
  void Remove(const Task& task);
  // Returns the task; null if no task with this incarnation (0: any) is at the address.
  Task* Find(const std::string& address, uint64_t incarnation) const;

  // Make the steps of a task reachable for transports, from Transport::Serve until its Stop or
  // until the task is removed. EndServing does nothing if another incarnation serves at the
  // address.
  void ServeSteps(const TaskId& self, TaskSteps& steps);
  void EndServing(const TaskId& self);
  // Returns the steps; null if no task with this incarnation (0: any) serves at the address.
  TaskSteps* FindSteps(const std::string& address, uint64_t incarnation) const;

  // Runs `arrive` after the time that a message takes. Drops `arrive` if `from` is dead or the
  // message is lost. A lost message also breaks the connection. `what` names the message in the
  // log.
  void Send(const SimEnd& from, const SimEnd& to, const std::string& what,
            Scheduler::Closure arrive);
  // Adds a line "MICROSECONDS us  TEXT" to the log.
  void Log(const std::string& text);
  const std::string& log() const { return log_; }

  // Calls `broken`, once, when a connection between the two hosts breaks.
  using Broken = std::function<void(const std::string& why)>;
  uint64_t Watch(const SimEnd& a, const SimEnd& b, Broken broken);
  void Unwatch(uint64_t watch) { watches_.erase(watch); }

  // Block and Freeze hold messages back until `until_ns`. If that is longer than the keepalive
  // time, the connections break, and the messages are lost. Break breaks them at once.
  void Block(const std::string& from, const std::string& to, int64_t until_ns);
  void Freeze(const std::string& host, int64_t until_ns);
  void Break(const std::string& a, const std::string& b, const std::string& why);
  // Kills the process. `silent`: its host fails, too, so that no connection is
  // reported as broken.
  void Kill(const SimEnd& end, bool silent);
  // Starts a host again that Kill has silenced.
  void Boot(const std::string& host) { down_hosts_.erase(host); }
  bool IsDead(const SimEnd& end) const { return dead_.count({end.host, end.incarnation}) != 0; }
  // Faults of the network until `until_ns`: one message in `lose_one_in` is lost, one request in
  // `repeat_one_in` is sent twice (0: none), and messages take `slowness` times as long.
  struct NetworkFaults {
    int64_t until_ns = 0;
    int lose_one_in = 0, repeat_one_in = 0, slowness = 1;
  };
  void set_faults(const NetworkFaults& faults) { faults_ = faults; }
  // Draws at random, by the faults that are set, whether a request is sent twice.
  bool DrawRepeat();

  // Notes that a step begins in a task. If the same step begins there twice, lists it as repeated.
  void NoteStep(const TaskId& task, int64_t step_id);
  const std::vector<std::string>& repeated_steps() const { return repeated_steps_; }

  // Make the arguments for Task::Parts.
  std::unique_ptr<Transport> NewTransport();
  std::function<std::shared_ptr<WorkerClient>(const TaskId&)> Connector(const TaskId& self);

  // Makes a session of `client` with the master of `task`.
  std::unique_ptr<SessionInterface> NewSession(const SimEnd& client, const TaskId& task,
                                               const SessionOptions& options);

  SimScheduler& scheduler() { return scheduler_; }
  Env& env() { return env_; }
  DeadlineTimer& timer() { return timer_; }

 private:
  struct Served {
    uint64_t incarnation;
    TaskSteps* steps;
  };
  struct Watched {
    std::string a, b;
    Broken broken;
  };
  uint64_t RandomBelow(uint64_t n) { return scheduler_.Random() % n; }
  bool has_faults() const { return scheduler_.now_ns() < faults_.until_ns; }
  int64_t DrawDelay();
  int64_t BlockedUntil(const std::string& from, const std::string& to) const;
  void LoseConnection(const std::string& from, const std::string& to, int64_t notice_ns,
                      const char* why);
  // Breaks the connections between the hosts `a` and `b` at `at_ns`; "" is any host.
  void BreakAt(int64_t at_ns, const std::string& a, const std::string& b, const char* why);
  void Deliver(int64_t at_ns, std::string line, Scheduler::Closure arrive);

  SimScheduler& scheduler_;
  Env& env_;
  DeadlineTimer& timer_;
  const Options options_;
  const int64_t start_ns_;
  std::map<std::string, Task*> tasks_;    // by address
  std::map<std::string, Served> served_;  // by address
  std::string log_;
  std::map<uint64_t, Watched> watches_;
  uint64_t next_watch_ = 0;
  NetworkFaults faults_;
  std::map<std::pair<std::string, std::string>, int64_t> blocked_;
  std::map<std::string, int64_t> frozen_;
  std::set<std::string> down_hosts_;
  std::set<std::pair<std::string, uint64_t>> dead_;
  // The (incarnation, step id) of each step that has begun.
  std::set<std::pair<uint64_t, int64_t>> steps_;
  std::vector<std::string> repeated_steps_;
  Mutex mu_;
  Condition arrived_;
  int64_t under_way_ ABSL_GUARDED_BY(mu_) = 0;  // number of messages under way
};

// Make the transport, the worker clients and the sessions of a network, for SimNetwork.
std::unique_ptr<Transport> NewSimTransport(SimNetwork& network);
std::shared_ptr<WorkerClient> NewSimWorkerClient(SimNetwork& network, const TaskId& self,
                                                 const TaskId& task);
std::unique_ptr<SessionInterface> NewSimSession(SimNetwork& network, const SimEnd& client,
                                                const TaskId& master,
                                                const SessionOptions& options);

}  // namespace penstock

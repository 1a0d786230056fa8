// SPDX-License-Identifier: Apache-2.0
#include "distributed/sim/sim_network.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace penstock {
namespace {

// The time after which the other end notices that a connection was reset.
constexpr int64_t kResetNanos = 1'000'000;

}  // namespace

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

void SimNetwork::Remove(const Task& task) {
  tasks_.erase(task.self().address);
  EndServing(task.self());
}

Task* SimNetwork::Find(const std::string& address, uint64_t incarnation) const {
  const auto found = tasks_.find(address);
  if (found == tasks_.end()) return nullptr;
  Task* const task = found->second;
  return incarnation == 0 || task->self().incarnation == incarnation ? task : nullptr;
}

void SimNetwork::ServeSteps(const TaskId& self, TaskSteps& steps) {
  CHECK(served_.emplace(self.address, Served{self.incarnation, &steps}).second,
        "two transports serve at ", self.address);
}

void SimNetwork::EndServing(const TaskId& self) {
  if (FindSteps(self.address, self.incarnation) != nullptr) served_.erase(self.address);
}

TaskSteps* SimNetwork::FindSteps(const std::string& address, uint64_t incarnation) const {
  const auto found = served_.find(address);
  if (found == served_.end()) return nullptr;
  const Served& served = found->second;
  return incarnation == 0 || served.incarnation == incarnation ? served.steps : nullptr;
}

void SimNetwork::Log(const std::string& text) {
  StrAppend(&log_, (scheduler_.now_ns() - start_ns_) / 1'000, " us  ", text, "\n");
}

int64_t SimNetwork::DrawDelay() {
  const auto range = static_cast<uint64_t>(options_.delay_max_ns - options_.delay_min_ns + 1);
  const auto delay = static_cast<int64_t>(RandomBelow(range)) + options_.delay_min_ns;
  return has_faults() ? delay * faults_.slowness : delay;
}

int64_t SimNetwork::BlockedUntil(const std::string& from, const std::string& to) const {
  int64_t until_ns = 0;
  if (const auto it = blocked_.find({from, to}); it != blocked_.end()) until_ns = it->second;
  for (const std::string& host : {from, to}) {
    if (const auto it = frozen_.find(host); it != frozen_.end()) {
      until_ns = std::max(until_ns, it->second);
    }
  }
  return until_ns;
}

void SimNetwork::Send(const SimEnd& from, const SimEnd& to, const std::string& what,
                      Scheduler::Closure arrive) {
  if (IsDead(from)) return;
  int64_t at_ns = scheduler_.now_ns() + DrawDelay();
  std::string line = StrCat(from.host, " -> ", to.host, "  ", what);
  if (down_hosts_.count(to.host) != 0) {
    return LoseConnection(from.host, to.host, options_.keepalive_ns, "keepalive watchdog timeout");
  }
  if (has_faults() && faults_.lose_one_in > 0 && RandomBelow(faults_.lose_one_in) == 0) {
    Log(line + "  IS LOST");
    return LoseConnection(from.host, to.host, kResetNanos, "the connection was reset");
  }
  const int64_t blocked_ns = BlockedUntil(from.host, to.host);
  if (blocked_ns > scheduler_.now_ns() + options_.keepalive_ns) {
    return LoseConnection(from.host, to.host, options_.keepalive_ns, "keepalive watchdog timeout");
  }
  if (blocked_ns > at_ns) at_ns = blocked_ns + DrawDelay();
  Deliver(at_ns, std::move(line), std::move(arrive));
}

void SimNetwork::Deliver(int64_t at_ns, std::string line, Scheduler::Closure arrive) {
  {
    MutexLock lock(mu_);
    ++under_way_;
  }
  scheduler_.ScheduleAt(at_ns,
                        [this, line = std::move(line), arrive = std::move(arrive)]() mutable {
                          Log(line);
                          std::move(arrive)();
                          arrive = nullptr;
                          MutexLock lock(mu_);
                          if (--under_way_ == 0) arrived_.NotifyAll();
                        });
}

void SimNetwork::LoseConnection(const std::string& from, const std::string& to, int64_t notice_ns,
                                const char* why) {
  BreakAt(scheduler_.now_ns() + notice_ns, from, to, why);
}

void SimNetwork::BreakAt(int64_t at_ns, const std::string& a, const std::string& b,
                         const char* why) {
  Deliver(at_ns, StrCat("connections of ", a, b.empty() ? "" : StrCat(" and ", b), " break"),
          [this, a, b, why] { Break(a, b, why); });
}

uint64_t SimNetwork::Watch(const SimEnd& a, const SimEnd& b, Broken broken) {
  const uint64_t watch = ++next_watch_;
  watches_[watch] = {a.host, b.host, std::move(broken)};
  return watch;
}

void SimNetwork::Break(const std::string& a, const std::string& b, const std::string& why) {
  std::vector<Broken> broken;
  for (auto it = watches_.begin(); it != watches_.end();) {
    const Watched& w = it->second;
    const bool between =
        b.empty() ? w.a == a || w.b == a : (w.a == a && w.b == b) || (w.a == b && w.b == a);
    if (between) broken.push_back(std::move(it->second.broken));
    it = between ? watches_.erase(it) : std::next(it);
  }
  for (const Broken& each : broken) each(why);
}

void SimNetwork::Block(const std::string& from, const std::string& to, int64_t until_ns) {
  blocked_[{from, to}] = until_ns;
  const int64_t noticed_ns = scheduler_.now_ns() + options_.keepalive_ns;
  if (until_ns > noticed_ns) BreakAt(noticed_ns, from, to, "keepalive watchdog timeout");
}

void SimNetwork::Freeze(const std::string& host, int64_t until_ns) {
  frozen_[host] = until_ns;
  const int64_t noticed_ns = scheduler_.now_ns() + options_.keepalive_ns;
  if (until_ns > noticed_ns) BreakAt(noticed_ns, host, "", "keepalive watchdog timeout");
}

void SimNetwork::Kill(const SimEnd& end, bool silent) {
  dead_.insert({end.host, end.incarnation});
  frozen_.erase(end.host);
  if (silent) down_hosts_.insert(end.host);
  BreakAt(scheduler_.now_ns() + (silent ? options_.keepalive_ns : kResetNanos), end.host, "",
          silent ? "keepalive watchdog timeout" : "the connection was reset");
}

bool SimNetwork::DrawRepeat() {
  return has_faults() && faults_.repeat_one_in > 0 && RandomBelow(faults_.repeat_one_in) == 0;
}

void SimNetwork::NoteStep(const TaskId& task, int64_t step_id) {
  if (steps_.insert({task.incarnation, step_id}).second) return;
  repeated_steps_.push_back(absl::StrFormat("step %016x was begun twice in %s",
                                            static_cast<uint64_t>(step_id), task.ToString()));
}

std::unique_ptr<Transport> SimNetwork::NewTransport() { return NewSimTransport(*this); }

std::function<std::shared_ptr<WorkerClient>(const TaskId&)> SimNetwork::Connector(
    const TaskId& self) {
  return [this, self](const TaskId& task) { return NewSimWorkerClient(*this, self, task); };
}

std::unique_ptr<SessionInterface> SimNetwork::NewSession(const SimEnd& client, const TaskId& task,
                                                         const SessionOptions& options) {
  return NewSimSession(*this, client, task, options);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/base/sim/sim_scheduler.h"

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/sim/fiber.h"

namespace penstock {
namespace {

// Not 0, which means "no deadline" in many places.
constexpr int64_t kStartNanos = 1'000'000'000;

}  // namespace

// A closure that has been started.
struct SimScheduler::Routine {
  using Time = std::pair<int64_t, uint64_t>;

  Fiber fiber;
  std::string name;
  // set while it waits
  const Condition* condition = nullptr;
  Time deadline;  // its entry in State::timers, if `timed`
  bool timed = false;
  bool in_time = true;
};

struct SimScheduler::State {
  // A closure to start, or a routine to resume.
  struct Ready {
    std::string name;
    Closure closure;
    Routine* routine = nullptr;
  };
  struct SimThread;

  explicit State(uint64_t seed) : random(seed) {}

  std::mt19937_64 random;
  int64_t now_ns = kStartNanos;
  uint64_t next_timer = 0;
  std::vector<Ready> ready;
  std::map<Routine::Time, Ready> timers;
  std::list<Routine*> waiting;  // in the order in which the routines began to wait
  std::vector<std::unique_ptr<Routine>> routines;
  std::vector<Routine*> idle;
  Routine* current = nullptr;
  bool failed = false, abandoned = false;

  void Begin(std::string name, Closure closure) {
    ready.push_back({.name = std::move(name), .closure = std::move(closure)});
  }
  Routine::Time AddTimer(int64_t at_ns, Ready then) {
    const Routine::Time time{std::max(at_ns, now_ns), next_timer++};
    timers.emplace(time, std::move(then));
    return time;
  }
  Ready TakeReady();
  void Wake(Routine* routine, bool in_time);
  void FireTimers();
  void Step(Ready next);
};

// Removes and returns one ready entry, chosen by the seed.
SimScheduler::State::Ready SimScheduler::State::TakeReady() {
  const size_t index = ready.size() == 1 ? 0 : random() % ready.size();
  Ready taken = std::move(ready[index]);
  ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(index));
  return taken;
}

void SimScheduler::State::Wake(Routine* routine, bool in_time) {
  if (routine->timed) timers.erase(routine->deadline);
  routine->timed = false;
  routine->in_time = in_time;
  routine->condition = nullptr;
  waiting.remove(routine);
  ready.push_back({.routine = routine});
}

// If nothing is ready, advances the clock to the next timer. Then wakes the routines whose deadline
// has passed, and makes the closures of ScheduleAt ready whose time has come.
void SimScheduler::State::FireTimers() {
  if (ready.empty() && !timers.empty()) now_ns = timers.begin()->first.first;
  while (!timers.empty() && timers.begin()->first.first <= now_ns) {
    if (Routine* const routine = timers.begin()->second.routine; routine != nullptr) {
      Wake(routine, /*in_time=*/false);
    } else {
      ready.push_back(std::move(timers.extract(timers.begin()).mapped()));
    }
  }
}

void SimScheduler::State::Step(Ready next) {
  Routine* routine = next.routine;
  if (routine == nullptr) {
    if (idle.empty()) {
      routines.push_back(std::make_unique<Routine>());
      idle.push_back(routines.back().get());
    }
    routine = idle.back();
    idle.pop_back();
    routine->name = std::move(next.name);
    routine->fiber.Start(std::move(next.closure));
  }
  current = routine;
  routine->fiber.Resume();
  current = nullptr;
  if (routine->fiber.ended()) idle.push_back(routine);
}

// The thread that StartThread returns.
struct SimScheduler::State::SimThread final : Thread {
  explicit SimThread(SimScheduler& scheduler) : ended(scheduler, "the end of a thread") {}
  ~SimThread() override {
    MutexLock lock(mu);
    ended.Wait(mu, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { return has_ended; });
  }
  Mutex mu;
  bool has_ended ABSL_GUARDED_BY(mu) = false;
  Condition ended;
};

SimScheduler::SimScheduler(const Options& options)
    : options_(options), state_(std::make_unique<State>(options.seed)) {}

SimScheduler::~SimScheduler() {
  // The state is never destroyed: a closure that still waits cannot be destroyed, because it holds
  // Dones that were not called.
  static auto& kept = *new std::vector<std::unique_ptr<State>>;
  if (state_->failed) kept.push_back(std::move(state_));
}

Status SimScheduler::Run(Closure body) {
  State& s = *state_;
  CHECK(s.current == nullptr, "SimScheduler::Run was called in a closure");
  s.Begin("main", std::move(body));
  for (;;) {
    s.FireTimers();
    if (s.ready.empty() && s.waiting.empty()) return OkStatus();
    const bool late = s.now_ns - kStartNanos > options_.limit_ns;
    if (late || s.ready.empty()) break;
    s.Step(s.TakeReady());
    if (!s.abandoned) continue;
    s.failed = true;
    return OkStatus();
  }
  s.failed = true;
  std::string waits;
  for (const Routine* routine : s.waiting) {
    absl::StrAppend(&waits, waits.empty() ? "" : "; ", routine->name, " waits for ",
                    routine->condition->what());
  }
  if (s.ready.empty()) return Internal("deadlock, nothing is left to run: ", waits);
  return DeadlineExceeded("did not end within ", options_.limit_ns / 1'000'000'000,
                          " s of simulated time: ", waits);
}

void SimScheduler::Abandon() { state_->abandoned = true; }

int64_t SimScheduler::now_ns() const { return state_->now_ns; }

uint64_t SimScheduler::Random() { return state_->random(); }

void SimScheduler::Schedule(Closure closure) { state_->Begin("a closure", std::move(closure)); }

void SimScheduler::ScheduleAt(int64_t at_ns, Closure closure) {
  state_->AddTimer(at_ns, {.name = "a closure", .closure = std::move(closure)});
}

void SimScheduler::SleepUntil(int64_t at_ns) { Scheduler::SleepUntil(at_ns, "its time to come"); }

std::unique_ptr<Thread> SimScheduler::StartThread(const std::string& name, Closure body) {
  auto thread = std::make_unique<State::SimThread>(*this);
  state_->Begin(name, [thread = thread.get(), body = std::move(body)]() mutable {
    std::move(body)();
    body = nullptr;
    MutexLock lock(thread->mu);
    thread->has_ended = true;
    thread->ended.NotifyAll();
  });
  return thread;
}

bool SimScheduler::Wait(Condition& condition, Mutex& mu, int64_t deadline_ns) {
  State& s = *state_;
  Routine* const self = s.current;
  CHECK(self != nullptr, "a wait for ", condition.what(), " outside of SimScheduler::Run");
  self->condition = &condition;
  self->timed = deadline_ns != Condition::kNever;
  if (self->timed) self->deadline = s.AddTimer(deadline_ns, {.routine = self});
  s.waiting.push_back(self);
  Native(mu).unlock();
  self->fiber.Suspend();
  CHECK(Native(mu).try_lock(), "a mutex is held during a wait for something else");
  return self->in_time;
}

void SimScheduler::Notify(Condition& condition) {
  State& s = *state_;
  for (auto it = s.waiting.begin(); it != s.waiting.end();) {
    Routine* const routine = *it++;
    if (routine->condition == &condition) s.Wake(routine, /*in_time=*/true);
  }
}

}  // namespace penstock

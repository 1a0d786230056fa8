// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker_clocks/worker_clocks.h"

#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/log.h"
#include "core/op/state_replay.h"

namespace penstock {
namespace {

constexpr char kSetAction[] = "set";
constexpr size_t kWaitsShownMax = 8;

// Return a + b and a - b; the nearest number that an int64_t can hold if it overflows. REQUIRES: b
// is at least 0.
int64_t SumOrMax(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}
int64_t DifferenceOrMin(int64_t a, int64_t b) {
  int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? std::numeric_limits<int64_t>::min()
                                                   : difference;
}

}  // namespace

class WorkerClocks::AdvanceOperation final : public Operation {
 public:
  AdvanceOperation(WorkerClocks& clocks, int64_t worker, const Limits& limits, Receive receive,
                   const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
        clocks_(clocks),
        worker_(worker),
        limits_(limits),
        receive_(std::move(receive)) {}

  int64_t worker() const { return worker_; }
  const Limits& limits() const { return limits_; }
  // Returns the least clock of all workers that count with which this one may go on.
  int64_t Needed() const {
    clocks_.mu_.AssertHeld();
    return DifferenceOrMin(clocks_.workers_[worker_].clock, limits_.bound);
  }

  StatusOr<Progress> Try() override {
    clocks_.mu_.AssertHeld();
    Worker& own = clocks_.workers_[worker_];
    if (!std::exchange(raised_, true)) {
      clocks_.Join(worker_, origin());
      clocks_.Set(worker_, SumOrMax(own.clock, 1), origin());
      began_ns_ = own.moved_ns;
      result_.clock = own.clock;
    }
    if (clocks_.AnyBelow(Needed())) {
      if (!waits_) BeginWait();
      return Progress::kNone;
    }
    if (waits_) EndWait();
    own.steps.erase(origin().step_id);
    own.moved_ns = clocks_.NowNanos();
    result_.waited_seconds = static_cast<double>(own.moved_ns - began_ns_) * 1e-9;
    return Progress::kDone;
  }
  void Undo() override {
    clocks_.mu_.AssertHeld();
    if (!waits_) return;
    EndWait();
    clocks_.workers_[worker_].moved_ns = clocks_.NowNanos();  // it was alive until now
  }
  Status Deliver() override {
    std::move(receive_)(result_);
    return OkStatus();
  }

  // Updates the place among the waits, because the worker's clock has changed.
  void ClockChanged() {
    clocks_.mu_.AssertHeld();
    clocks_.waits_.erase(key_);
    key_.first = Needed();
    clocks_.waits_[key_] = this;
  }

 private:
  void BeginWait() {
    clocks_.mu_.AssertHeld();
    waits_ = true;
    key_ = {Needed(), ++clocks_.last_wait_};
    clocks_.waits_[key_] = this;
    clocks_.workers_[worker_].waiting.push_back(this);
    if (limits_.timeout_ns > 0) clocks_.timeouts_ns_.insert(limits_.timeout_ns);
  }
  void EndWait() {
    clocks_.mu_.AssertHeld();
    waits_ = false;
    clocks_.waits_.erase(key_);
    std::erase(clocks_.workers_[worker_].waiting, this);
    if (limits_.timeout_ns == 0) return;
    clocks_.timeouts_ns_.erase(clocks_.timeouts_ns_.find(limits_.timeout_ns));
  }

  WorkerClocks& clocks_;
  const int64_t worker_;
  const Limits limits_;
  Receive receive_;
  bool raised_ = false;  // the clock was raised
  bool waits_ = false;   // this is one of clocks_.waits_, at key_
  WaitKey key_;
  int64_t began_ns_ = 0;
  Advanced result_;
};

StatusOr<std::shared_ptr<WorkerClocks>> WorkerClocks::Make(std::string name, int64_t workers) {
  if (workers < 1 || workers > kWorkersMax) {
    return InvalidArgument("WorkerClocks '", name, "': workers is ", workers, ", must be in [1, ",
                           kWorkersMax, "]");
  }
  return std::make_shared<WorkerClocks>(std::move(name), std::vector<int64_t>(workers));
}

WorkerClocks::WorkerClocks(std::string name, const std::vector<int64_t>& clocks)
    : Blocking(kType, std::move(name), 1, Order::kAnyOrder),
      num_workers_(static_cast<int64_t>(clocks.size())),
      workers_(clocks.size()) {
  for (size_t i = 0; i < clocks.size(); ++i) workers_[i].clock = clocks[i];
}

Status WorkerClocks::UseTime(Scheduler& threads, Env& env) {
  MutexLock lock(mu_);
  if (alarm_ != nullptr) return OkStatus();
  const std::weak_ptr<Blocking> weak = weak_from_this();
  ASSIGN_OR_RETURN(alarm_, Alarm::Make(threads, env, [weak] {
                     const std::shared_ptr<Blocking> clocks = weak.lock();
                     if (clocks != nullptr) static_cast<WorkerClocks&>(*clocks).OnAlarm();
                   }));
  env_ = &env;
  return OkStatus();
}

Status WorkerClocks::Check(int64_t worker) const {
  if (worker >= 0 && worker < num_workers_) return OkStatus();
  return InvalidArgument("worker is ", worker, ", but WorkerClocks '", name(), "' has workers [0, ",
                         num_workers_, ")");
}

template <class Change>
void WorkerClocks::ChangeAndAdvance(Change change) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (change()) Advance(&ended);
  }
  Finish(ended);
}

bool WorkerClocks::StopCounting(int64_t worker) {
  counting_.erase({workers_[worker].clock, worker});
  return std::exchange(workers_[worker].counts, false);
}

void WorkerClocks::Set(int64_t worker, int64_t clock, const UpdateOrigin& origin) {
  Worker& own = workers_[worker];
  if (own.counts) {
    counting_.erase({own.clock, worker});
    counting_.insert({clock, worker});
  }
  own.clock = clock;
  own.moved_ns = NowNanos();
  for (AdvanceOperation* operation : own.waiting) operation->ClockChanged();
  Changed(origin, kSetAction, [&] { return std::vector<Tensor>{Value(worker), Value(clock)}; });
}

void WorkerClocks::Join(int64_t worker, const UpdateOrigin& origin) {
  Worker& joining = workers_[worker];
  if (std::exchange(joining.counts, true)) return;
  joining.moved_ns = NowNanos();
  const int64_t least = counting_.empty() ? joining.clock : counting_.begin()->first;
  counting_.insert({joining.clock, worker});
  if (least != joining.clock) Set(worker, least, origin);
}

// The slowest worker never waits, because it is not ahead of any other one. So if an operation has
// to wait, then for the slowest worker, and those with the least need are the first to go on.
void WorkerClocks::Advance(Ended* ended) {
  if (!line(0).empty()) TryOne(*line(0).back(), ended);
  while (!waits_.empty()) {
    if (!AnyBelow(waits_.begin()->first.first)) {
      TryOne(*waits_.begin()->second, ended);
    } else if (!StopSlowest()) {
      return;
    }
  }
}

bool WorkerClocks::StopSlowest() {
  if (timeouts_ns_.empty()) return false;
  const int64_t slowest = counting_.begin()->second, now_ns = NowNanos();
  const int64_t until_ns = SumOrMax(workers_[slowest].moved_ns, *timeouts_ns_.begin());
  if (now_ns < until_ns) {
    if (alarm_ != nullptr && until_ns < alarm_ns_) alarm_->Set(alarm_ns_ = until_ns);
    return false;
  }
  StopCounting(slowest);
  Log({.level = LogLevel::kWarning,
       .event = "worker_left_behind",
       .text = absl::StrFormat(
           "%s has not finished a step for %.1f s; the other workers of the training do not wait "
           "for it any more, until it does",
           NameOf(slowest), static_cast<double>(now_ns - workers_[slowest].moved_ns) * 1e-9),
       .limited = true});
  return true;
}

void WorkerClocks::Begin(int64_t worker, const std::string& label, const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  workers_[worker].label = label;
  workers_[worker].steps.insert(origin.step_id);
  Join(worker, origin);
}

void WorkerClocks::Advance(int64_t worker, const Limits& limits, Receive receive,
                           const Caller& caller, Done done) {
  Start(0, std::make_shared<AdvanceOperation>(*this, worker, limits, std::move(receive), caller,
                                              std::move(done)));
}

void WorkerClocks::StepEnded(int64_t worker, int64_t step_id) {
  ChangeAndAdvance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::set<int64_t>& steps = workers_[worker].steps;
    return steps.erase(step_id) > 0 && steps.empty() && StopCounting(worker);
  });
}

void WorkerClocks::Leave(int64_t worker) {
  ChangeAndAdvance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return StopCounting(worker); });
}

void WorkerClocks::AddHolder(int64_t worker) {
  MutexLock lock(mu_);
  ++workers_[worker].holders;
}

void WorkerClocks::RemoveHolder(int64_t worker) {
  ChangeAndAdvance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return --workers_[worker].holders == 0 && StopCounting(worker);
  });
}

// Time alone ends a wait: Advance stops counting the slowest worker, or sets the next alarm.
void WorkerClocks::OnAlarm() {
  ChangeAndAdvance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    alarm_ns_ = Condition::kNever;
    return true;
  });
}

WorkerClocks::Snapshot WorkerClocks::Read() const {
  Snapshot snapshot;
  MutexLock lock(mu_);
  for (const Worker& worker : workers_) {
    snapshot.clocks.push_back(worker.clock);
    snapshot.counts.push_back(worker.counts);
  }
  return snapshot;
}

std::string WorkerClocks::NameOf(int64_t worker) const {
  const std::string& label = workers_[worker].label;
  return label.empty() ? StrCat("worker ", worker) : StrCat("worker ", worker, " (", label, ")");
}

// Lists which workers wait for which other workers; `penstock why` prints this text.
std::string WorkerClocks::DebugString() const {
  MutexLock lock(mu_);
  std::string text = StrCat(kType, " '", name(), "'");
  size_t shown = 0;
  for (const auto& operation : line(0)) {
    const auto& waits = static_cast<const AdvanceOperation&>(*operation);
    for (int64_t other = 0; other < num_workers_; ++other) {
      if (!workers_[other].counts || workers_[other].clock >= waits.Needed()) continue;
      if (++shown > kWaitsShownMax) return StrCat(text, "; and others");
      StrAppend(&text, shown == 1 ? ": " : "; ", NameOf(waits.worker()), ", after step ",
                workers_[waits.worker()].clock, ", waits for ", NameOf(other), ", after step ",
                workers_[other].clock, ", with bound ", waits.limits().bound);
    }
  }
  if (shown > 0) return text;
  return StrCat(text, ": ", counting_.size(), " of ", num_workers_,
                " workers take steps, none waits");
}

std::vector<Tensor> WorkerClocks::DescribeLocked() const {
  std::vector<int64_t> clocks;
  for (const Worker& worker : workers_) clocks.push_back(worker.clock);
  return {Tensor::Vector(clocks)};
}

std::vector<Tensor> WorkerClocks::Describe() const {
  MutexLock lock(mu_);
  return DescribeLocked();
}

StatusOr<Resource::Description> WorkerClocks::DescribeNow() const {
  MutexLock lock(mu_);
  return Description{.values = DescribeLocked(), .version = version()};
}

Status WorkerClocks::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  if (change.action != kSetAction) return values.UnknownAction();
  RETURN_IF_ERROR(values.Expect(2));
  ASSIGN_OR_RETURN(const int64_t worker, values.Int(0));
  ASSIGN_OR_RETURN(const int64_t clock, values.Int(1));
  RETURN_IF_ERROR(Check(worker));
  MutexLock lock(mu_);
  Set(worker, clock, origin);
  return OkStatus();
}

namespace {

StatusOr<std::shared_ptr<Resource>> MakeWorkerClocks(const std::string& name,
                                                     const ReplayValues& values, Env&) {
  RETURN_IF_ERROR(values.Expect(1));
  const Tensor& clocks = values.Get(0);
  if (!clocks.valid() || clocks.dtype() != DType::kInt64 || clocks.rank() != 1 ||
      clocks.num_elements() < 1 || clocks.num_elements() > WorkerClocks::kWorkersMax) {
    return values.Error("clocks must be an int64 vector with an element for each worker");
  }
  const auto each = clocks.flat<int64_t>();
  return std::make_shared<WorkerClocks>(name, std::vector<int64_t>(each.begin(), each.end()));
}
const ResourceMakerDeclaration worker_clocks_maker(WorkerClocks::kType, MakeWorkerClocks);

}  // namespace

}  // namespace penstock

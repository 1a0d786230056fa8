// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/step_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/error_origin.h"
#include "core/base/fault_point.h"
#include "distributed/collective/exchange.h"
#include "distributed/collective/reserved_steps.h"

namespace penstock {
namespace {

const FaultPoint kRepeats(FaultPoint::kBug, "steps/repeat-accepted",
                          "a step that has ended in a task begins there again");
const FaultPoint kLateTensors(FaultPoint::kBug, "steps/late-tensor-accepted",
                              "a tensor of a step that has ended goes to another step");
const FaultPoint kNotParked(FaultPoint::kBug, "steps/subscription-dropped",
                            "a subscription that comes before its step is forgotten");
const FaultPoint kNotAborted(FaultPoint::kBug, "steps/abort-ignored",
                             "a step goes on although its master has aborted it");

}  // namespace

StepTable::StepTable(TaskName task, Env& env, DeadlineTimer& timer)
    : task_(std::move(task)), env_(env), timer_(timer) {}

StepTable::~StepTable() {
  CHECK(steps_.empty(), "a table of steps destroyed while ", steps_.size(), " of them run");
  std::optional<DeadlineTimer::Token> expiry;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    expiry = expiry_;
  }
  if (expiry.has_value()) timer_.Disarm(*expiry);
}

StatusOr<std::shared_ptr<Step>> StepTable::Begin(int64_t step_id, const std::string& session) {
  auto step = std::make_shared<Step>(step_id, task_, session, env_.NowNanos(), exchange_);
  std::vector<ParkedSubscription> waiting;
  {
    MutexLock lock(mu_);
    if (ended_.contains(step_id) && !kRepeats.Fires()) {
      return Aborted("step ", step_id, " has ended or was aborted before it began");
    }
    if (!steps_.emplace(step_id, step).second) {
      return AlreadyExists("step ", step_id, " is already running");
    }
    waiting = TakeParked(step_id);
  }
  for (ParkedSubscription& parked : waiting)
    step->Subscribe(parked.consumer, std::move(parked.sink));
  return step;
}

void StepTable::End(int64_t step_id) {
  std::shared_ptr<Step> step;  // destroyed after the lock is released
  const int64_t now_ns = env_.NowNanos();
  MutexLock lock(mu_);
  const auto it = steps_.find(step_id);
  if (it == steps_.end()) return;
  step = std::move(it->second);
  steps_.erase(it);
  last_end_ns_ = now_ns;
  for (const auto& [consumer, sent] : step->SentTo()) sent_[consumer].Add(sent);
  RememberEnded(step_id);
}

void StepTable::Abort(int64_t step_id, const Status& why) {
  if (kNotAborted.Fires()) return;
  std::shared_ptr<Step> step;
  std::vector<ParkedSubscription> waiting;
  {
    MutexLock lock(mu_);
    const auto it = steps_.find(step_id);
    if (it != steps_.end()) {
      step = it->second;
    } else {
      RememberEnded(step_id);
      waiting = TakeParked(step_id);
    }
  }
  if (step != nullptr) step->Cancel(why);
  for (const ParkedSubscription& parked : waiting) parked.sink->Refuse(step_id, why);
}

void StepTable::AbortSession(const std::string& session, const Status& why) {
  std::vector<std::shared_ptr<Step>> steps;
  {
    MutexLock lock(mu_);
    for (const auto& [id, step] : steps_) {
      if (step->session() == session) steps.push_back(step);
    }
  }
  CancelAll(steps, why);
}

void StepTable::AbortAll(const Status& why) {
  std::vector<std::shared_ptr<Step>> steps;
  {
    MutexLock lock(mu_);
    for (const auto& [id, step] : steps_) steps.push_back(step);
  }
  CancelAll(steps, why);
}

void StepTable::CancelAll(const std::vector<std::shared_ptr<Step>>& steps, const Status& why) {
  for (const auto& step : steps) step->Cancel(why);
}

TaskSteps* StepTable::ReceiverOf(int64_t step_id) const {
  if (collective::kStepsOfCalls.Contains(step_id)) return calls_;
  const bool of_collectives = collective::kStepsOfCollectives.Contains(step_id);
  return of_collectives && exchange_ != nullptr ? &exchange_->steps() : nullptr;
}

void StepTable::Subscribe(const std::string& name, int64_t step_id,
                          std::shared_ptr<TensorSink> sink) {
  if (TaskSteps* const other = ReceiverOf(step_id)) {
    return other->Subscribe(name, step_id, std::move(sink));
  }
  const StatusOr<TaskName> parsed = TaskName::Parse(name);
  if (!parsed.ok()) return sink->Refuse(step_id, Annotate(parsed.status(), "the consumer"));
  const TaskName& consumer = *parsed;
  std::shared_ptr<Step> step;
  Status refused;
  {
    MutexLock lock(mu_);
    const auto it = steps_.find(step_id);
    if (it != steps_.end()) {
      step = it->second;
    } else if (ended_.contains(step_id)) {
      // The step has failed here. Sends no refusal: it could reach the consumer before the master's
      // abort, which names the cause.
      return;
    } else if (kNotParked.Fires()) {
      return;
    } else if (parked_per_consumer_[consumer] >= kParkedPerConsumerMax) {
      refused = ResourceExhausted(name, " waits in ", task_.ToString(), " for more than ",
                                  kParkedPerConsumerMax, " steps that have not begun there");
    } else {
      ++parked_per_consumer_[consumer];
      parked_.push_back({step_id, consumer, std::move(sink), env_.NowNanos()});
      ArmExpiry();
    }
  }
  if (step != nullptr) {
    step->Subscribe(consumer, std::move(sink));
  } else if (!refused.ok()) {
    sink->Refuse(step_id, refused);
  }
}

void StepTable::Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) {
  if (TaskSteps* const other = ReceiverOf(step_id)) {
    return other->Deliver(step_id, key, std::move(value), is_dead);
  }
  auto step = Find(step_id);
  if (step == nullptr && kLateTensors.Fires()) {
    const auto running = steps();
    if (!running.empty()) step = running.front();
  }
  if (step != nullptr) step->Deliver(key, std::move(value), is_dead);
}

void StepTable::Fail(int64_t step_id, const Status& why) {
  if (TaskSteps* const other = ReceiverOf(step_id)) return other->Fail(step_id, why);
  const auto step = Find(step_id);
  if (step != nullptr) step->Cancel(Explain(step_id, why));
}

Status StepTable::Explain(int64_t step_id, const Status& task_lost) const {
  const auto step = Find(step_id);
  if (step != nullptr && step->cancellation().cancelled()) return step->cancellation().status();
  return WithMessage(task_lost, StrCat(task_lost.message(), "; ",
                                       step == nullptr ? StrCat("step ", step_id, " ran there")
                                                       : step->Describe()));
}

StepTable::Counts StepTable::counts() const {
  MutexLock lock(mu_);
  return {.running = static_cast<int64_t>(steps_.size()),
          .parked = static_cast<int64_t>(parked_.size()),
          .last_end_ns = last_end_ns_};
}

std::vector<int64_t> StepTable::running() const {
  MutexLock lock(mu_);
  std::vector<int64_t> ids;
  for (const auto& [id, step] : steps_) ids.push_back(id);
  return ids;
}

std::vector<std::shared_ptr<Step>> StepTable::steps() const {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<Step>> steps;
  for (const auto& [id, step] : steps_) steps.push_back(step);
  return steps;
}

std::map<TaskName, SentCounts> StepTable::SentTo() const {
  std::map<TaskName, SentCounts> sent;
  std::vector<std::shared_ptr<Step>> running;
  {
    MutexLock lock(mu_);
    sent = sent_;
    for (const auto& [id, step] : steps_) running.push_back(step);
  }
  for (const auto& step : running) {
    for (const auto& [consumer, its] : step->SentTo()) sent[consumer].Add(its);
  }
  return sent;
}

std::shared_ptr<Step> StepTable::Find(int64_t step_id) const {
  MutexLock lock(mu_);
  const auto it = steps_.find(step_id);
  return it == steps_.end() ? nullptr : it->second;
}

void StepTable::RememberEnded(int64_t step_id) {
  if (!ended_.insert(step_id).second) return;
  ended_order_.push_back(step_id);
  if (ended_order_.size() > kEndedRemembered) {
    ended_.erase(ended_order_.front());
    ended_order_.pop_front();
  }
}

std::vector<StepTable::ParkedSubscription> StepTable::TakeParked(int64_t step_id) {
  std::vector<ParkedSubscription> taken;
  if (parked_.empty()) return taken;
  const auto kept =
      std::stable_partition(parked_.begin(), parked_.end(),
                            [&](const ParkedSubscription& p) { return p.step_id != step_id; });
  std::move(kept, parked_.end(), std::back_inserter(taken));
  parked_.erase(kept, parked_.end());
  for (const ParkedSubscription& p : taken) {
    const auto count = parked_per_consumer_.find(p.consumer);
    if (--count->second == 0) parked_per_consumer_.erase(count);
  }
  return taken;
}

void StepTable::ArmExpiry() {
  if (expiry_armed_ || stopping_ || parked_.empty()) return;
  expiry_armed_ = true;
  expiry_ = timer_.Arm(parked_.front().since_ns + kParkedNanosMax, [this] { Expire(); });
}

void StepTable::Expire() {
  std::vector<ParkedSubscription> expired;
  {
    MutexLock lock(mu_);
    const int64_t now = env_.NowNanos();
    while (!parked_.empty() && parked_.front().since_ns + kParkedNanosMax <= now) {
      const auto front = TakeParked(parked_.front().step_id);
      expired.insert(expired.end(), front.begin(), front.end());
    }
  }
  for (const ParkedSubscription& p : expired) {
    p.sink->Refuse(p.step_id, Aborted("step ", p.step_id, " did not begin in ", task_.ToString(),
                                      " within ", kParkedNanosMax / 1'000'000'000, " s"));
  }
  // Arms the timer last: the destructor locks `mu_` and disarms the timer, which waits for a call
  // of Expire that is running.
  MutexLock lock(mu_);
  expiry_armed_ = false;
  ArmExpiry();
}

}  // namespace penstock

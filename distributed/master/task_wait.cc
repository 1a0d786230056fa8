// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/task_wait.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/join.h"
#include "core/base/mutex.h"
#include "core/base/timeout.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
// The timeout of one question. If a task has two replicas, one of them may be on a host that is
// down, and the answer of the other one must not wait for it.
constexpr int64_t kQuestionMs = 2'000, kReplicaQuestionMs = 500;

}  // namespace

TaskWait::TaskWait(Options options, Answered answered)
    : options_(std::move(options)),
      begun_ns_(options_.env->NowNanos()),
      deadline_ns_(begun_ns_ + TimeoutNanos(options_.timeout_ms)),
      answered_(std::move(answered)),
      answers_(options_.tasks.size(), Unavailable("was not asked")),
      other_answers_(answers_) {}

void TaskWait::Ask() {
  const int64_t left_ms = (deadline_ns_ - options_.env->NowNanos()) / kNanosPerMilli;
  const auto call = [left_ms](int64_t limit_ms) {
    return CallOptions{.timeout_ms = std::clamp<int64_t>(left_ms, 1, limit_ms)};
  };
  const auto self = shared_from_this();
  const auto round = std::make_shared<Join>(Done([self](const Status&) { self->RoundEnded(); }));
  for (size_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i].ok()) continue;
    const bool replicated = options_.tasks[i].other_client != nullptr;
    const CallOptions one = call(replicated ? kReplicaQuestionMs : kQuestionMs);
    if (replicated) AskOne(i, /*other=*/true, one, Join::Part(round));
    AskOne(i, /*other=*/false, one, Join::Part(round));
  }
}

void TaskWait::AskOne(size_t task, bool other, const CallOptions& call, Done part) {
  const Task& asked = options_.tasks[task];
  WorkerClient& client = other ? *asked.other_client : *asked.client;
  client.GetStatus({.want_devices = true}, call,
                   [self = shared_from_this(), task, other,
                    part = std::move(part)](StatusOr<TaskStatus> answer) mutable {
                     (other ? self->other_answers_ : self->answers_)[task] = std::move(answer);
                     std::move(part)(OkStatus());
                   });
}

// For each task with two replicas, makes the answer of the serving replica the task's answer. If
// none or both of them serve, the task's answer becomes an error.
void TaskWait::ChooseReplicas() {
  for (size_t i = 0; i < answers_.size(); ++i) {
    StatusOr<TaskStatus>& answer = answers_[i];
    if (options_.tasks[i].other_client == nullptr) continue;
    StatusOr<TaskStatus>& other = other_answers_[i];
    const bool other_serves = other.ok() && other->serving;
    if (answer.ok() && answer->serving) {
      // Both replicas claim to serve: the network has cut them off from each other, and one of them
      // will soon notice that the other one has taken over.
      if (other_serves) answer = Unavailable("both of its replicas say that they serve");
    } else if (other_serves) {
      answer = std::move(other);
    } else if (answer.ok()) {
      answer = Unavailable("neither of its replicas serves yet; the other one: ",
                           other.ok() ? "follows" : std::string(other.status().message()));
    }
  }
}

void TaskWait::NoteUnanswered() {
  unanswered_.clear();
  for (size_t i = 0; i < answers_.size(); ++i) {
    if (!answers_[i].ok()) unanswered_.emplace_back(options_.tasks[i].id, answers_[i].status());
  }
}

std::vector<std::pair<TaskId, Status>> TaskWait::unanswered() const {
  MutexLock lock(mu_);
  return unanswered_;
}

void TaskWait::RoundEnded() {
  Status end;
  {
    MutexLock lock(mu_);
    if (!answered_.has_value()) return;
    ChooseReplicas();
    NoteUnanswered();
    const bool all = std::all_of(answers_.begin(), answers_.end(),
                                 [](const auto& answer) { return answer.ok(); });
    if (!all) {
      const int64_t next_ns = options_.env->NowNanos() + options_.pause_ms * kNanosPerMilli;
      if (next_ns < deadline_ns_) {
        next_round_ = options_.timer->Arm(next_ns, [self = shared_from_this()] { self->Ask(); });
        return;
      }
      end = NoAnswerError();
    }
  }
  std::optional<Answered> answered = TakeAnswered();
  if (!answered.has_value()) return;
  if (!end.ok()) return (*std::move(answered))(std::move(end));
  std::vector<TaskStatus> answers;
  for (StatusOr<TaskStatus>& answer : answers_) answers.push_back(*std::move(answer));
  (*std::move(answered))(std::move(answers));
}

Status TaskWait::NoAnswerError() const {
  std::vector<std::string> silent;
  for (size_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i].ok()) continue;
    silent.push_back(
        StrCat(options_.tasks[i].id.ToString(), " (", answers_[i].status().message(), ")"));
  }
  return DeadlineExceeded("CreateSession: no answer within ", options_.timeout_ms, " ms from ",
                          absl::StrJoin(silent, ", "));
}

std::optional<TaskWait::Answered> TaskWait::TakeAnswered() {
  MutexLock lock(mu_);
  return std::exchange(answered_, std::nullopt);
}

void TaskWait::Cancel(const Status& why) {
  std::optional<Answered> answered = TakeAnswered();
  if (!answered.has_value()) return;
  // From here on no code arms the timer.
  std::optional<DeadlineTimer::Token> armed;
  {
    MutexLock lock(mu_);
    armed = next_round_;
  }
  if (armed.has_value()) options_.timer->Disarm(*armed);
  (*std::move(answered))(why);
}

}  // namespace penstock

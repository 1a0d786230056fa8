// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/step_calls.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "distributed/collective/reserved_steps.h"

namespace penstock {
namespace {

constexpr char kRequest[] = "run_graph", kAnswer[] = "run_graph_ended";
// The maximum number of bytes of messages that wait until a task has connected. Only answers wait,
// and only those to the first steps of a master.
constexpr int64_t kHeldBytesMax = int64_t{64} << 20;

TaskName NameOf(const TaskId& task) {
  StatusOr<TaskName> name = TaskName::Parse(task.name);
  CHECK_OK(name.status());
  return *std::move(name);
}

Tensor ToTensor(const google::protobuf::MessageLite& message) {
  Tensor bytes(DType::kUint8, Shape({static_cast<int64_t>(message.ByteSizeLong())}));
  message.SerializeWithCachedSizesToArray(static_cast<uint8_t*>(bytes.mutable_raw_data()));
  return bytes;
}

bool FromTensor(const Tensor& bytes, google::protobuf::MessageLite* message) {
  return bytes.valid() && bytes.dtype() == DType::kUint8 &&
         message->ParseFromArray(bytes.raw_data(), static_cast<int>(bytes.bytes()));
}

}  // namespace

StepCalls::StepCalls(const TaskId& self, Transport& transport, Env& env)
    : self_(self),
      env_(env),
      links_(NameOf(self), collective::kStepsOfCalls, *this, kHeldBytesMax) {
  links_.set_transport(&transport);
}

void StepCalls::Serve(std::function<void(const wire::RunGraphRequest&, Answer)> run,
                      std::function<void(int64_t step_id)> abort) {
  run_ = std::move(run);
  abort_ = std::move(abort);
}

void StepCalls::Connect(const TaskId& task) {
  const StatusOr<TaskName> name = TaskName::Parse(task.name);
  if (!name.ok()) return;
  {
    MutexLock lock(mu_);
    const auto connected = connected_.find(*name);
    if (connected != connected_.end() && connected->second != task.incarnation) return;
    const int64_t now_ns = env_.NowNanos();
    const auto [tried, is_new] = tried_ns_.emplace(*name, now_ns);
    if (!is_new && now_ns - tried->second < kRetryNanos) return;
    tried->second = now_ns;
    connected_[*name] = task.incarnation;
  }
  links_.Connect(task);
}

bool StepCalls::Run(const TaskName& worker, const wire::RunGraphRequest& request, Ended* ended) {
  const std::pair<int64_t, TaskName> step(static_cast<int64_t>(request.step_id()), worker);
  {
    MutexLock lock(mu_);
    const auto connected = connected_.find(worker);
    if (connected == connected_.end() || connected->second != request.incarnation()) return false;
    // Adds the step before its request is sent, because the answer may come, or the worker be lost,
    // at any time.
    running_.emplace(step, std::move(*ended));
  }
  if (links_.SendIfConnected(worker, KeyTo(worker, kRequest), ToTensor(request))) return true;
  MutexLock lock(mu_);
  const auto found = running_.find(step);
  if (found == running_.end()) return true;  // the step has just failed or been abandoned
  *ended = std::move(found->second);
  running_.erase(found);
  return false;
}

void StepCalls::Abandon(int64_t step_id) {
  std::vector<std::pair<TaskName, Ended>> abandoned;
  {
    MutexLock lock(mu_);
    for (auto it = running_.lower_bound({step_id, TaskName()});
         it != running_.end() && it->first.first == step_id; it = running_.erase(it)) {
      abandoned.emplace_back(it->first.second, std::move(it->second));
    }
  }
  wire::RunGraphResponse none;
  for (auto& [worker, ended] : abandoned) {
    std::move(ended)(Cancelled(worker.ToString(), " is not waited for any more"), none);
  }
}

void StepCalls::Received(const TaskName& from, const HashedKey& key, Tensor value) {
  if (key.key().tensor == kRequest) {
    wire::RunGraphRequest request;
    if (FromTensor(value, &request) && run_ != nullptr) return Begin(from, request);
  } else if (key.key().tensor == kAnswer) {
    wire::RunGraphResponse answer;
    if (FromTensor(value, &answer)) return Answered(from, answer);
  }
  // Ends the connection, because otherwise a step would never get its answer.
  Lost(from, DataLoss(from.ToString(), " sent a message about a step that is malformed"));
}

void StepCalls::Begin(const TaskName& master, const wire::RunGraphRequest& request) {
  const auto step_id = static_cast<int64_t>(request.step_id());
  {
    MutexLock lock(mu_);
    begun_[master].insert(step_id);
  }
  run_(request, [this, master, step_id](wire::RunGraphResponse answer) {
    answer.set_step_id(static_cast<uint64_t>(step_id));
    AnswerTo(master, answer);
  });
}

void StepCalls::AnswerTo(const TaskName& master, const wire::RunGraphResponse& answer) {
  {
    MutexLock lock(mu_);
    const auto steps = begun_.find(master);
    // The master has been lost meanwhile, so the answer is not needed.
    if (steps == begun_.end() || steps->second.erase(static_cast<int64_t>(answer.step_id())) == 0)
      return;
  }
  // TaskLinks holds the answer until the master has connected: the master's first request may come
  // before its subscription.
  links_.Send(master, KeyTo(master, kAnswer), ToTensor(answer), [] {});
}

void StepCalls::Answered(const TaskName& worker, wire::RunGraphResponse& answer) {
  Ended ended;
  {
    MutexLock lock(mu_);
    const auto found = running_.find({static_cast<int64_t>(answer.step_id()), worker});
    if (found == running_.end()) return;  // the step was abandoned
    ended = std::move(found->second);
    running_.erase(found);
  }
  std::move(ended)(OkStatus(), answer);
}

void StepCalls::Lost(const TaskName& task, const Status& why) {
  std::vector<Ended> ended;
  std::set<int64_t> begun;
  {
    MutexLock lock(mu_);
    connected_.erase(task);
    for (auto it = running_.begin(); it != running_.end();) {
      if (it->first.second != task) {
        ++it;
        continue;
      }
      ended.push_back(std::move(it->second));
      it = running_.erase(it);
    }
    const auto steps = begun_.find(task);
    if (steps != begun_.end()) begun = std::exchange(steps->second, {});
  }
  // The other task may still wait for answers over its connection from this task, so it needs an
  // error, too. That error names this task as the lost one, whereas `why` names the other task.
  links_.HangUp(task, Unavailable("lost the connection to ", self_.ToString(),
                                  ", which ended it: ", why.message()));
  wire::RunGraphResponse none;
  for (Ended& one : ended) std::move(one)(why, none);
  for (const int64_t step_id : begun) abort_(step_id);
}

const HashedKey& StepCalls::KeyTo(const TaskName& task, const char* what) {
  MutexLock lock(mu_);
  const auto found = keys_.find({task, what});
  if (found != keys_.end()) return found->second;
  HashedKey key({.src_device = StrCat(self_.name, "/device:CPU:0"),
                 .src_incarnation = self_.incarnation,
                 .dst_device = StrCat(task.ToString(), "/device:CPU:0"),
                 .tensor = what});
  return keys_.emplace(std::pair(task, std::string(what)), std::move(key)).first->second;
}

}  // namespace penstock

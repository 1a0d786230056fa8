// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/task_links.h"

#include <utility>

namespace penstock::collective {

TaskLinks::TaskLinks(TaskName self, const ReservedSteps& steps, LinkListener& listener,
                     int64_t held_bytes_max)
    : self_(std::move(self)),
      step_ids_(steps),
      held_bytes_max_(held_bytes_max),
      listener_(listener),
      next_step_id_(steps.max) {}

void TaskLinks::Connect(const TaskId& task) {
  const StatusOr<TaskName> name = TaskName::Parse(task.name);
  if (!name.ok() || *name == self_ || transport_ == nullptr) return;
  TaskId before;
  int64_t before_step = 0, step_id = 0;
  {
    MutexLock lock(mu_);
    Link& link = links_[*name];
    if (link.connected_to == task) return;
    before = std::exchange(link.connected_to, task);
    // Drops a sink that leads to a process that has ended. The new process will connect by itself.
    if (link.last_incarnation != task.incarnation && std::exchange(link.sink_is_old, false)) {
      link.sink = nullptr;
    }
    link.last_incarnation = task.incarnation;
    before_step = link.step_id;
    step_id = link.step_id = next_step_id_;
    next_step_id_ = next_step_id_ == step_ids_.min ? step_ids_.max : next_step_id_ - 1;
  }
  if (!before.name.empty()) {
    transport_->Unsubscribe(before, before_step);
    listener_.Lost(*name, Aborted(before.ToString(), " has restarted"));
  }
  transport_->Subscribe(task, step_id);
}

void TaskLinks::Send(const TaskName& task, const HashedKey& key, Tensor value,
                     TensorSink::HandedOver handed_over) {
  std::shared_ptr<TensorSink> sink;
  std::deque<HeldMessage> dropped;
  int64_t step_id = 0, dropped_bytes = 0;
  {
    MutexLock lock(mu_);
    Link& link = links_[task];
    sink = link.sink;
    step_id = link.sink_step_id;
    if (sink == nullptr) {
      link.held_bytes += static_cast<int64_t>(value.bytes());
      link.held.push_back({key, std::move(value), std::move(handed_over)});
      if (link.held.size() > kHeldMax || link.held_bytes > held_bytes_max_) {
        dropped.swap(link.held);
        dropped_bytes = std::exchange(link.held_bytes, 0);
      }
    }
  }
  if (sink != nullptr) {
    return sink->Send(step_id, key, std::move(value), /*is_dead=*/false, std::move(handed_over));
  }
  if (dropped.empty()) return;
  // Calls Lost, which ends the groups, before `handed_over` of the dropped messages: otherwise the
  // executions that sent them would seem to have succeeded.
  listener_.Lost(task,
                 ResourceExhausted(task.ToString(), " has not connected, and ", dropped.size(),
                                   " messages of ", dropped_bytes, " bytes wait for it; at most ",
                                   kHeldMax, " of ", held_bytes_max_, " bytes may"));
  for (HeldMessage& held : dropped) std::move(held.handed_over)();
}

bool TaskLinks::SendIfConnected(const TaskName& task, const HashedKey& key, Tensor value) {
  std::shared_ptr<TensorSink> sink;
  int64_t step_id = 0;
  {
    MutexLock lock(mu_);
    const auto found = links_.find(task);
    if (found == links_.end()) return false;
    const Link& link = found->second;
    if (link.sink == nullptr || link.sink_is_old || link.connected_to.name.empty()) return false;
    sink = link.sink;
    step_id = link.sink_step_id;
  }
  sink->Send(step_id, key, std::move(value), /*is_dead=*/false, [] {});
  return true;
}

void TaskLinks::HangUp(const TaskName& task, const Status& why) {
  std::shared_ptr<TensorSink> sink;
  int64_t step_id = 0;
  {
    MutexLock lock(mu_);
    const auto found = links_.find(task);
    if (found == links_.end()) return;
    sink = std::exchange(found->second.sink, nullptr);
    step_id = found->second.sink_step_id;
  }
  if (sink != nullptr) sink->Refuse(step_id, why);
}

void TaskLinks::SendOrDrop(const TaskName& task, const HashedKey& key, Tensor value,
                           Tensor final_message) {
  std::shared_ptr<TensorSink> sink;
  int64_t step_id = 0;
  {
    MutexLock lock(mu_);
    const auto found = links_.find(task);
    if (found == links_.end()) return;
    Link& link = found->second;
    sink = link.sink;
    step_id = link.sink_step_id;
    if (sink == nullptr && final_message.valid()) {
      link.final_messages.push_back({key, std::move(final_message), [] {}});
      if (link.final_messages.size() > kFinalMessagesMax) link.final_messages.pop_front();
    }
  }
  if (sink != nullptr) sink->Send(step_id, key, std::move(value), /*is_dead=*/false, [] {});
}

void TaskLinks::Subscribe(const std::string& consumer, int64_t step_id,
                          std::shared_ptr<TensorSink> sink) {
  const StatusOr<TaskName> name = TaskName::Parse(consumer);
  if (!name.ok()) return sink->Refuse(step_id, Annotate(name.status(), "the consumer"));
  std::deque<HeldMessage> held, final_messages;
  bool full = false;
  {
    MutexLock lock(mu_);
    full = !links_.contains(*name) && links_.size() >= kTasksMax;
    if (!full) {
      Link& link = links_[*name];
      link.sink = sink;
      link.sink_step_id = step_id;
      link.sink_is_old = false;
      held.swap(link.held);
      final_messages.swap(link.final_messages);
      link.held_bytes = 0;
    }
  }
  if (full) {
    return sink->Refuse(step_id, ResourceExhausted(self_.ToString(), " is connected to ", kTasksMax,
                                                   " tasks for collectives, the most that it can ",
                                                   "be: ", consumer, " cannot take part"));
  }
  for (std::deque<HeldMessage>* const messages : {&held, &final_messages}) {
    for (HeldMessage& h : *messages) {
      sink->Send(step_id, h.key, std::move(h.value), /*is_dead=*/false, std::move(h.handed_over));
    }
  }
  listener_.Connected(*name);
}

void TaskLinks::Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) {
  const StatusOr<TaskName> from = TaskName::OfDevice(key.key().src_device);
  if (!from.ok() || is_dead) return;
  {
    MutexLock lock(mu_);
    const auto link = links_.find(*from);
    // Drops a tensor of an older subscription, which the current one has replaced.
    if (link == links_.end() || link->second.step_id != step_id) return;
  }
  listener_.Received(*from, key, std::move(value));
}

void TaskLinks::Fail(int64_t step_id, const Status& why) {
  TaskId lost;
  {
    MutexLock lock(mu_);
    for (auto& [name, link] : links_) {
      if (link.step_id != step_id || link.connected_to.name.empty()) continue;
      lost = std::exchange(link.connected_to, {});
      link.sink_is_old = true;
      link.step_id = 0;
      break;
    }
  }
  if (lost.name.empty()) return;
  transport_->Unsubscribe(lost, step_id);
  const StatusOr<TaskName> name = TaskName::Parse(lost.name);
  CHECK_OK(name.status());
  listener_.Lost(*name, why);
}

}  // namespace penstock::collective

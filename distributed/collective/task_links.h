// SPDX-License-Identifier: Apache-2.0
//
// TaskLinks: connections from a task to other tasks, which outlive steps. Each is a subscription
// to a reserved step id, over the same transport as the tensors of steps.
//
// A task receives messages of another task once it has connected to that task. Thread-safe; no
// lock is held while the transport, a sink or the listener is called.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/op/task_name.h"
#include "core/runtime/rendezvous.h"
#include "distributed/collective/reserved_steps.h"
#include "distributed/transport/transport.h"

namespace penstock::collective {

// Receives the messages of other tasks. Called on the transport's threads.
class LinkListener {
 public:
  virtual void Received(const TaskName& from, const HashedKey& key, Tensor value) = 0;
  // Called when `task` has connected to this task, perhaps not for the first time.
  virtual void Connected(const TaskName& task) = 0;
  // Called when `task`, or the connection from it, is lost; `why` names the task. The next Connect
  // tries again.
  virtual void Lost(const TaskName& task, const Status& why) = 0;

 protected:
  ~LinkListener() = default;
};

class TaskLinks final : public TaskSteps {
 public:
  // The maximum number of messages held for one task that has not connected yet, and the maximum
  // number of tasks.
  static constexpr size_t kHeldMax = 10'000, kTasksMax = 10'000;
  // The maximum number of final messages (see SendOrDrop) held for one task that has not connected
  // yet.
  static constexpr size_t kFinalMessagesMax = 16;

  // `steps`: the ids under which this task subscribes; all tasks that exchange messages use the
  // same ids. `held_bytes_max`: the maximum number of bytes of the messages held for one task.
  TaskLinks(TaskName self, const ReservedSteps& steps, LinkListener& listener,
            int64_t held_bytes_max);

  // Must be called before any Connect.
  void set_transport(Transport* transport) { transport_ = transport; }

  // Connects to this incarnation of `task`, to receive its messages. Does nothing if
  // they are already connected.
  void Connect(const TaskId& task);
  // Sends `value` to `task`, or holds it here until the task has connected to this one.
  // `handed_over` is called as by TensorSink. If the held messages exceed a limit, all of them
  // are dropped, and the task is reported as lost with ResourceExhausted.
  void Send(const TaskName& task, const HashedKey& key, Tensor value,
            TensorSink::HandedOver handed_over);
  // Sends `value` and returns true if `task` and this task are connected in both directions; else
  // returns false. If the connection from `task` is lost later, the listener is told.
  [[nodiscard]] bool SendIfConnected(const TaskName& task, const HashedKey& key, Tensor value);
  // Ends the connection from `task` to this task. The listener in `task` gets Lost with `why`.
  void HangUp(const TaskName& task, const Status& why);
  // Sends like Send, but drops the value if the task has not connected: for messages that the
  // listener sends again when the task connects (LinkListener::Connected). If `final_message` is
  // valid, a task that has not connected receives it when it connects.
  void SendOrDrop(const TaskName& task, const HashedKey& key, Tensor value,
                  Tensor final_message = Tensor());

  // TaskSteps, called for reserved step ids:
  void Subscribe(const std::string& consumer, int64_t step_id,
                 std::shared_ptr<TensorSink> sink) override;
  void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) override;
  void Fail(int64_t step_id, const Status& why) override;

 private:
  struct HeldMessage {
    HashedKey key;
    Tensor value;
    TensorSink::HandedOver handed_over;
  };
  struct Link {
    // The incarnation that this task is connected to; empty name: none.
    TaskId connected_to;
    uint64_t last_incarnation = 0;  // incarnation of the last connection
    int64_t step_id = 0;            // reserved step id of this task's subscription
    std::shared_ptr<TensorSink> sink;
    int64_t sink_step_id = 0;      // reserved step id of the consumer's subscription
    bool sink_is_old = false;      // the task was lost after it had subscribed with `sink`
    std::deque<HeldMessage> held;  // messages held until there is a sink
    int64_t held_bytes = 0;
    std::deque<HeldMessage> final_messages;  // sent after `held`, oldest first
  };

  const TaskName self_;
  const ReservedSteps step_ids_;
  const int64_t held_bytes_max_;
  LinkListener& listener_;
  Transport* transport_ = nullptr;

  Mutex mu_;
  std::map<TaskName, Link> links_ ABSL_GUARDED_BY(mu_);
  int64_t next_step_id_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collective

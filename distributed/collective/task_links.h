// SPDX-License-Identifier: Apache-2.0
//
// TaskLinks: a task's ways to other tasks that outlive steps. They are subscriptions to a reserved
// step id, over the same transport as the tensors of steps.
//
// A task hears another one from the time that it has connected to it. Thread-safe; no lock is held
// while the transport, a sink or the listener is called.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/op/task_name.h"
#include "core/runtime/rendezvous.h"
#include "distributed/transport/transport.h"

namespace penstock::collective {

// Hears what comes. Called on the transport's threads.
class LinkListener {
 public:
  virtual void Received(const TaskName& from, const HashedKey& key, Tensor value) = 0;
  // `task` has connected to this one, perhaps again.
  virtual void Connected(const TaskName& task) = 0;
  // `task`, or the way from it, is lost; `why` names it. Connect tries again.
  virtual void Lost(const TaskName& task, const Status& why) = 0;

 protected:
  ~LinkListener() = default;
};

class TaskLinks final : public TaskSteps {
 public:
  // The most messages that wait for a task which has not connected, and the most tasks.
  static constexpr size_t kHeldMax = 10'000, kTasksMax = 10'000;
  // The most last words (Tell) that wait for such a task.
  static constexpr size_t kLastWordsMax = 16;

  // `held_bytes_max`: of the messages that wait for one task.
  TaskLinks(TaskName self, LinkListener& listener, int64_t held_bytes_max);

  // Before any Connect.
  void set_transport(Transport* transport) { transport_ = transport; }

  // Hears `task` from now on, in this incarnation. Does nothing if that is so already.
  void Connect(const TaskId& task);
  // Sends `value` to `task`, or holds it here until the task has connected to this one.
  // `handed_over` is called as by TensorSink. If too much is held, all of it is dropped, and the
  // task is reported to be lost with ResourceExhausted.
  void Send(const TaskName& task, const HashedKey& key, Tensor value,
            TensorSink::HandedOver handed_over);
  // Sends as above, but drops the value if the task has not connected: for messages that
  // LinkListener::Connected repeats. In its place the task hears `last_word`, if that is valid,
  // when it connects.
  void Tell(const TaskName& task, const HashedKey& key, Tensor value, Tensor last_word = Tensor());

  // TaskSteps, for reserved step ids.
  void Subscribe(const std::string& consumer, int64_t step_id,
                 std::shared_ptr<TensorSink> sink) override;
  void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) override;
  void Fail(int64_t step_id, const Status& why) override;

 private:
  struct Held {
    HashedKey key;
    Tensor value;
    TensorSink::HandedOver handed_over;
  };
  struct Link {
    TaskId heard;                   // whom this task is connected to; no name: nobody
    uint64_t last_incarnation = 0;  // of the last one that it was connected to
    int64_t step_id = 0;            // of that subscription
    std::shared_ptr<TensorSink> sink;
    int64_t sink_step_id = 0;  // the consumer's
    bool sink_is_old = false;  // the task was lost since the sink came
    std::deque<Held> held;     // until there is a sink
    int64_t held_bytes = 0;
    std::deque<Held> last_words;  // after what is held, the oldest first
  };

  const TaskName self_;
  const int64_t held_bytes_max_;
  LinkListener& listener_;
  Transport* transport_ = nullptr;

  Mutex mu_;
  std::map<TaskName, Link> links_ ABSL_GUARDED_BY(mu_);
  int64_t next_step_id_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collective

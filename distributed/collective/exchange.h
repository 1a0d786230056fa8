// SPDX-License-Identifier: Apache-2.0
//
// Exchange: a task's part in collectives: brings ranks together into groups, and hands what they
// bring to their FormedGroup.
//
// How a group forms: a rank tells all tasks of its session that it is there (Join). Every task
// that has a rank in the group thus hears of all others, in any order, and knows the same ranks
// when the last has come: the group has formed, without a leader. Leave takes a Join back. A group
// ends for all its tasks when one of them leaves it: because it has lost another task, because a
// step was cancelled, or because the session has ended.
//
// If the ranks are of several sessions, each of them may have trained on for some steps when it
// hears of the end. So the end is an error of each session's next collective, and of all that
// follow: a new session begins anew. Within one session the master ends the step for all.
//
// Thread-safe. The transport and the sessions' tasks are borrowed. Destroy it when no step runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/runtime/collective.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/collective/early_messages.h"
#include "distributed/collective/formed_group.h"
#include "distributed/collective/messages.h"
#include "distributed/collective/pending_call.h"
#include "distributed/collective/recent_numbers.h"
#include "distributed/collective/task_links.h"

namespace penstock::collective {

class Exchange final : public LinkListener {
 public:
  struct Options {
    TaskName self;
    Scheduler* threads = nullptr;  // borrowed, as are the following
    Env* env = nullptr;
    DeadlineTimer* timer = nullptr;
    // All tasks of a session, or an error if there is none of this handle.
    std::function<StatusOr<std::vector<TaskId>>(const std::string& session)> tasks_of;
    // The most bytes of messages that wait: per task that has not connected yet, per group for
    // executions that have not begun here, and for all groups that have not formed here. Most of
    // what waits is a reference on what an execution sends or receives, so the limit is far above
    // the variables of a task.
    int64_t unclaimed_bytes_max = int64_t{16} << 30;
    size_t groups_max = 10'000;  // that this task knows of
  };
  explicit Exchange(Options options);
  ~Exchange();

  // Must be called before any Collect of a session with several tasks.
  void set_transport(Transport* transport) { links_.set_transport(transport); }
  // Returns the receiver of what the transport delivers for reserved step ids.
  TaskSteps& steps() { return links_; }

  // See Collectives.
  void Collect(const std::string& session, int64_t step_id, CollectiveCall call,
               Collectives::Collected collected);
  // The bytes of messages that wait for groups which have not formed here.
  int64_t early_bytes() const {
    MutexLock lock(mu_);
    return early_.bytes();
  }
  // The session takes part no longer. In the middle of a collective that is a failure.
  void EndSession(const std::string& session, const Status& why);

 private:
  struct Joined {
    Rank rank;
    bool own = false;  // of this task
  };
  // A call that waits for its group.
  struct Waiting {
    std::shared_ptr<PendingCall> pending;
    std::string session;
    int64_t step_id = 0;
    DeviceName device;
    CollectiveCall call;
    std::set<TaskName> tasks;  // of its session
  };
  struct Group {
    std::map<DeviceName, Joined> joined;
    std::vector<Waiting> waiting;
    std::shared_ptr<FormedGroup> formed;
    std::map<std::string, Status> failed;  // by session
  };
  // Messages to send and functions to call once the lock has been released.
  struct Actions {
    struct Telling {
      TaskName task;
      Message message;
      std::optional<Message> last_word = std::nullopt;  // TaskLinks::Tell
    };
    std::vector<Telling> messages;
    std::vector<std::function<void()>> calls;
  };

  // LinkListener.
  void Received(const TaskName& from, const HashedKey& key, Tensor value) override;
  void Connected(const TaskName& task) override;
  void Lost(const TaskName& task, const Status& why) override;

  bool BeginFormed(const GroupKey& key, const std::string& session, int64_t step_id,
                   const DeviceName& device, CollectiveCall& call,
                   const std::shared_ptr<PendingCall>& pending);
  void BeginIn(const std::shared_ptr<FormedGroup>& formed, int rank, int64_t step_id,
               CollectiveCall call, const std::shared_ptr<PendingCall>& pending);
  // Fails the call after `seconds`.
  void ArmTimer(const GroupKey& key, const std::shared_ptr<PendingCall>& pending, double seconds,
                int64_t instance);
  void Wait(const GroupKey& key, Waiting waiting, const std::vector<TaskId>& tasks);
  void TryForm(const GroupKey& key, Group& group, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Heard(const TaskName& from, const Join& join);
  void Heard(const TaskName& from, const Leave& leave);
  void FailCall(const std::shared_ptr<PendingCall>& pending, const Status& why);
  // Ends calls that wait, if `fails` says so, and takes their Joins back.
  void FailWaiting(const GroupKey& key, Group& group, const Status& why,
                   const std::function<bool(const Waiting&)>& fails, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndFormed(FormedGroup& formed, const Status& why);
  void Detach(FormedGroup& formed, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // ResourceExhausted if `key` is new, and there are too many groups.
  Status CheckRoomFor(const GroupKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellLeave(const FormedGroup& formed, const Status& why, Actions* actions) const;
  void Tell(const std::vector<TaskName>& tasks, const Message& message, Actions* actions) const;
  void Do(Actions actions);
  std::string WhoHasCome(const GroupKey& key);

  const Options options_;
  TaskLinks links_;

  mutable Mutex mu_;
  std::map<GroupKey, Group> groups_ ABSL_GUARDED_BY(mu_);
  std::map<uint32_t, std::shared_ptr<FormedGroup>> formed_ ABSL_GUARDED_BY(mu_);  // by id
  EarlyMessages early_ ABSL_GUARDED_BY(mu_);
  RecentNumbers gone_ ABSL_GUARDED_BY(mu_);  // nonces of Joins that no longer hold
  uint64_t next_message_ ABSL_GUARDED_BY(mu_) = 1;
};

}  // namespace penstock::collective

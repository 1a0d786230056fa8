// SPDX-License-Identifier: Apache-2.0
//
// Exchange: runs collectives in one task. It brings ranks together into groups, and hands each
// rank's call to its FormedGroup.
//
// How a group forms: each rank announces itself to all tasks of its session (Join). So every task
// that has a rank in the group receives the Joins of all other ranks, in any order. When the last
// Join has arrived, all these tasks know the same ranks: the group has formed, without a leader.
// Leave revokes a Join. A group ends for all its tasks when one of them leaves it because it has
// lost another task, a step was cancelled, or the session has ended.
//
// If the ranks belong to several sessions, each session may run some more steps before its task
// learns that the group has ended. Therefore the session's next collective fails, and so do all
// later ones, until the client makes a new session. Within one session the master ends the step for
// all ranks.
//
// Thread-safe. The transport and the sessions' tasks are borrowed. Must not be destroyed while a
// step runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/runtime/collective.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/collective/formed_group.h"
#include "distributed/collective/group_table.h"
#include "distributed/collective/messages.h"
#include "distributed/collective/pending_call.h"
#include "distributed/collective/task_links.h"

namespace penstock::collective {

class Exchange final : public LinkListener {
 public:
  struct Options {
    TaskName self;
    Scheduler* threads = nullptr;  // borrowed, like `env` and `timer`
    Env* env = nullptr;
    DeadlineTimer* timer = nullptr;
    // Returns all tasks of a session, or an error if there is no session with this handle.
    std::function<StatusOr<std::vector<TaskId>>(const std::string& session)> tasks_of;
    // The maximum number of bytes of waiting messages. It applies separately to the messages for
    // each task that has not connected yet, to each group's messages for executions that have not
    // begun here, and to the messages of all groups that have not formed here. Most of these
    // messages share memory with inputs or outputs of an execution, so the limit is far
    // above the size of a task's variables.
    int64_t unclaimed_bytes_max = int64_t{16} << 30;
    size_t groups_max = 10'000;  // maximum number of groups that this task knows
  };
  explicit Exchange(Options options);
  ~Exchange();

  // Must be called before any Collect of a session with several tasks.
  void set_transport(Transport* transport) { links_.set_transport(transport); }
  // Returns the receiver for subscriptions to reserved step ids.
  TaskSteps& steps() { return links_; }

  // Implements Collectives::Collect for this task.
  void Collect(const std::string& session, int64_t step_id, CollectiveCall call,
               Collectives::Collected collected);
  // For tests. Returns the size of the messages that wait for groups which have not formed here.
  int64_t early_bytes() const {
    MutexLock lock(mu_);
    return table_.early().bytes();
  }
  // Ends the session's part in collectives. Its running collectives fail with `why`.
  void EndSession(const std::string& session, const Status& why);

 private:
  using Waiting = GroupTable::Waiting;
  using Group = GroupTable::Group;
  using JoinedRank = GroupTable::JoinedRank;

  // Implements LinkListener:
  void Received(const TaskName& from, const HashedKey& key, Tensor value) override;
  void Connected(const TaskName& task) override;
  void Lost(const TaskName& task, const Status& why) override;

  bool BeginFormed(const GroupKey& key, const std::string& session, int64_t step_id,
                   const DeviceName& device, CollectiveCall& call,
                   const std::shared_ptr<PendingCall>& pending);
  void BeginInGroup(const std::shared_ptr<FormedGroup>& formed, int rank, int64_t step_id,
                    CollectiveCall call, const std::shared_ptr<PendingCall>& pending);
  // Arms a timer that fails the call after `seconds`.
  void ArmTimer(const GroupKey& key, const std::shared_ptr<PendingCall>& pending, double seconds,
                int64_t instance);
  // Adds a call to those that wait for the group, and announces its rank to `tasks`.
  void Wait(const GroupKey& key, Waiting waiting, const std::vector<TaskId>& tasks);
  // Forms the group if all its ranks have joined, and at least one of them belongs to this task.
  void TryForm(const GroupKey& key, Group& group, GroupActions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Handle(const TaskName& from, const Join& join);
  void Handle(const TaskName& from, const Leave& leave);
  void FailCall(const std::shared_ptr<PendingCall>& pending, const Status& why);
  void EndFormed(FormedGroup& formed, const Status& why);
  void RunActions(GroupActions actions);
  std::string DescribeJoined(const GroupKey& key);

  const Options options_;
  TaskLinks links_;

  // Locked before the mutexes of the FormedGroups and PendingCalls. Not held while a message is
  // sent or a call ends: both are collected in GroupActions, which RunActions executes afterwards.
  mutable Mutex mu_;
  GroupTable table_ ABSL_GUARDED_BY(mu_);
  uint64_t next_message_ ABSL_GUARDED_BY(mu_) = 1;
};

}  // namespace penstock::collective

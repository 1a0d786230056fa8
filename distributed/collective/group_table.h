// SPDX-License-Identifier: Apache-2.0
//
// GroupTable: the groups that an Exchange knows: those whose ranks are still joining, those that
// have formed, and the messages that have arrived for groups that have not formed here.
//
// Not thread-safe: the Exchange guards it by its mutex. The table sends no messages and calls no
// continuations: it adds them to GroupActions, which the Exchange executes without its mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/collective.h"
#include "distributed/collective/early_messages.h"
#include "distributed/collective/formed_group.h"
#include "distributed/collective/messages.h"
#include "distributed/collective/pending_call.h"
#include "distributed/collective/recent_numbers.h"

namespace penstock::collective {

// Messages to send and functions to call once the lock has been released.
struct GroupActions {
  struct OutgoingMessage {
    TaskName task;
    Message message;
    std::optional<Message> final_message = std::nullopt;  // see TaskLinks::SendOrDrop
  };
  std::vector<OutgoingMessage> messages;
  std::vector<std::function<void()>> calls;

  // Adds `message` to each of `tasks`.
  void Send(const std::vector<TaskName>& tasks, const Message& message);
};

class GroupTable {
 public:
  struct JoinedRank {
    Rank rank;
    bool own = false;  // the rank is a device of this task
  };
  // A call of one rank that waits for its group.
  struct Waiting {
    std::shared_ptr<PendingCall> pending;
    std::string session;
    int64_t step_id = 0;
    DeviceName device;
    CollectiveCall call;
    std::set<TaskName> tasks;  // the tasks of its session
  };
  struct Group {
    std::map<DeviceName, JoinedRank> joined;
    std::vector<Waiting> waiting;
    std::shared_ptr<FormedGroup> formed;
    std::map<std::string, Status> failed;  // why a session's calls fail, by session
  };
  using Formed = std::map<uint32_t, std::shared_ptr<FormedGroup>>;  // by id

  // `groups_max`: the maximum number of groups. `early_bytes_max`: as for EarlyMessages.
  GroupTable(TaskName self, size_t groups_max, int64_t early_bytes_max);

  // Returns null if the group is not known.
  Group* Find(const GroupKey& key);
  // Returns the group, which is added if it is new.
  Group& At(const GroupKey& key) { return groups_[key]; }
  // ResourceExhausted if `key` is new and this task knows too many groups.
  Status CheckRoomFor(const GroupKey& key);
  // Forgets groups without ranks, calls and errors.
  void ForgetUnused();
  // Returns a text that says which ranks of the group have joined.
  std::string DescribeJoined(const GroupKey& key) const;

  // If all ranks of the group have joined, removes and returns them, sorted. Returns an empty list
  // if a rank is missing, or if none of them belongs to this task.
  std::vector<Rank> TakeJoined(const GroupKey& key, Group& group);
  void AddFormed(Group& group, const std::shared_ptr<FormedGroup>& formed);
  // Returns null if no group with this id has formed.
  std::shared_ptr<FormedGroup> FindFormed(uint32_t id) const;
  const Formed& formed() const { return formed_; }
  // Makes the group start no new executions: the next call of a rank joins again, or fails.
  void Retire(FormedGroup& formed, const Status& why);
  // Forgets ended groups without running executions.
  void RemoveEnded(int64_t now_ns);
  EarlyMessages& early() { return early_; }
  const EarlyMessages& early() const { return early_; }

  // Notes that the Joins with these nonces no longer hold.
  void Revoke(const std::vector<uint64_t>& nonces);
  // Returns whether a Join was revoked, or has become a rank of a group that has formed.
  bool HasHandled(uint64_t nonce) const;
  // Forgets that ranks of `task` have joined.
  void ForgetRanksOf(const TaskName& task);
  // Ends the waiting calls for which `fails` returns true, and revokes their Joins.
  using Fails = std::function<bool(const Waiting&)>;
  void FailWaiting(const GroupKey& key, Group& group, const Status& why, const Fails& fails,
                   GroupActions* actions);
  // Does the same as FailWaiting above, in all groups.
  void FailWaiting(const Status& why, const Fails& fails, GroupActions* actions);
  // Does the same in all groups, and adds the group's name to the error of each call.
  void FailWaitingAnnotated(const Status& why, const Fails& fails, GroupActions* actions);
  // Removes the session's errors from Group::failed, so that its calls no longer fail.
  void ForgetFailures(const std::string& session);

  // Adds Joins of this task's ranks, to be sent to `task`, which has just connected.
  void AddJoinMessages(const TaskName& task, GroupActions* actions) const;
  // Adds messages that tell the group's other tasks that this task's ranks leave it.
  void AddLeaveMessages(const FormedGroup& formed, const Status& why, GroupActions* actions) const;

 private:
  const TaskName self_;
  const size_t groups_max_;
  std::map<GroupKey, Group> groups_;
  Formed formed_;
  EarlyMessages early_;
  RecentNumbers revoked_nonces_;
};

}  // namespace penstock::collective

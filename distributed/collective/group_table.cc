// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/group_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

namespace penstock::collective {
namespace {

constexpr size_t kRevokedNoncesMax = 4096;

}  // namespace

void GroupActions::Send(const std::vector<TaskName>& tasks, const Message& message) {
  for (const TaskName& task : tasks) messages.push_back({task, message});
}

GroupTable::GroupTable(TaskName self, size_t groups_max, int64_t early_bytes_max)
    : self_(std::move(self)),
      groups_max_(groups_max),
      early_(early_bytes_max),
      revoked_nonces_(kRevokedNoncesMax) {}

GroupTable::Group* GroupTable::Find(const GroupKey& key) {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : &found->second;
}

Status GroupTable::CheckRoomFor(const GroupKey& key) {
  if (groups_.contains(key) || groups_.size() < groups_max_) return OkStatus();
  ForgetUnused();
  if (groups_.size() < groups_max_) return OkStatus();
  return ResourceExhausted(self_.ToString(), " knows ", groups_.size(),
                           " groups of collectives, the most that it can: there is no room for ",
                           key.ToString(), "; use fewer group keys, or close sessions");
}

void GroupTable::ForgetUnused() {
  for (auto it = groups_.begin(); it != groups_.end();) {
    const Group& group = it->second;
    const bool unused = group.joined.empty() && group.waiting.empty() && group.formed == nullptr &&
                        group.failed.empty();
    it = unused ? groups_.erase(it) : std::next(it);
  }
}

std::string GroupTable::DescribeJoined(const GroupKey& key) const {
  std::vector<std::string> come;
  const auto group = groups_.find(key);
  if (group != groups_.end()) {
    for (const auto& [device, joined] : group->second.joined) come.push_back(device.ToString());
  }
  return StrCat(come.size(), " of its ranks have come: ", absl::StrJoin(come, ", "));
}

std::vector<Rank> GroupTable::TakeJoined(const GroupKey& key, Group& group) {
  if (static_cast<int64_t>(group.joined.size()) < key.size) return {};
  std::vector<Rank> ranks;
  bool own = false;
  for (const auto& [device, joined] : group.joined) {
    ranks.push_back(joined.rank);
    own |= joined.own;
  }
  group.joined.clear();
  if (!own) return {};
  FormedGroup::SortRanks(&ranks);
  return ranks;
}

void GroupTable::AddFormed(Group& group, const std::shared_ptr<FormedGroup>& formed) {
  group.formed = formed;
  formed_[formed->id()] = formed;
}

std::shared_ptr<FormedGroup> GroupTable::FindFormed(uint32_t id) const {
  const auto found = formed_.find(id);
  return found == formed_.end() ? nullptr : found->second;
}

void GroupTable::Retire(FormedGroup& formed, const Status& why) {
  Group& group = groups_[formed.key()];
  if (group.formed.get() == &formed) group.formed = nullptr;
  if (formed.one_session()) return;
  for (const Rank& rank : formed.ranks()) {
    if (rank.task == self_) group.failed.emplace(rank.session, why);
  }
}

void GroupTable::RemoveEnded(int64_t now_ns) {
  early_.Expire(now_ns);
  for (auto it = formed_.begin(); it != formed_.end();) {
    if (!it->second->ended() || it->second->running()) {
      ++it;
      continue;
    }
    const uint32_t id = it->first;
    it = formed_.erase(it);
    early_.Forget(id);
  }
}

void GroupTable::Revoke(const std::vector<uint64_t>& nonces) {
  for (const uint64_t nonce : nonces) revoked_nonces_.Add(nonce);
}

bool GroupTable::HasHandled(uint64_t nonce) const {
  if (revoked_nonces_.contains(nonce)) return true;
  for (const auto& [id, each] : formed_) {
    for (const Rank& rank : each->ranks()) {
      if (rank.nonce == nonce) return true;
    }
  }
  return false;
}

void GroupTable::ForgetRanksOf(const TaskName& task) {
  for (auto& [key, group] : groups_) {
    std::erase_if(group.joined, [&](const auto& each) { return each.second.rank.task == task; });
  }
}

void GroupTable::FailWaiting(const GroupKey& key, Group& group, const Status& why,
                             const Fails& fails, GroupActions* actions) {
  std::vector<Waiting> kept;
  std::map<DeviceName, std::set<TaskName>> gone;
  for (Waiting& waiting : group.waiting) {
    if (!fails(waiting)) {
      kept.push_back(std::move(waiting));
      continue;
    }
    gone[waiting.device].insert(waiting.tasks.begin(), waiting.tasks.end());
    actions->calls.push_back([pending = waiting.pending, why] { pending->End(why); });
  }
  group.waiting = std::move(kept);
  for (const auto& [device, tasks] : gone) {
    const bool waits = std::any_of(group.waiting.begin(), group.waiting.end(),
                                   [&, d = device](const Waiting& w) { return w.device == d; });
    const auto joined = group.joined.find(device);
    if (waits || joined == group.joined.end() || !joined->second.own) continue;
    actions->Send({tasks.begin(), tasks.end()},
                  Leave{.group = key, .nonces = {joined->second.rank.nonce}, .why = why});
    group.joined.erase(joined);
  }
}

void GroupTable::FailWaiting(const Status& why, const Fails& fails, GroupActions* actions) {
  for (auto& [key, group] : groups_) FailWaiting(key, group, why, fails, actions);
}

void GroupTable::FailWaitingAnnotated(const Status& why, const Fails& fails,
                                      GroupActions* actions) {
  for (auto& [key, group] : groups_) {
    FailWaiting(key, group, Annotate(why, key.ToString()), fails, actions);
  }
}

void GroupTable::ForgetFailures(const std::string& session) {
  for (auto& [key, group] : groups_) group.failed.erase(session);
}

void GroupTable::AddJoinMessages(const TaskName& task, GroupActions* actions) const {
  const auto tell = [&](const GroupKey& key, const Rank& rank) {
    const Join join{.group = key,
                    .device = rank.device.ToString(),
                    .session = rank.session,
                    .nonce = rank.nonce};
    actions->Send({task}, join);
  };
  for (const auto& [key, group] : groups_) {
    for (const auto& [device, joined] : group.joined) {
      if (joined.own) tell(key, joined.rank);
    }
  }
  // A group may have formed here although `task` has not received the Joins of all its ranks.
  for (const auto& [id, formed] : formed_) {
    if (!formed->Has(task) || formed->ended()) continue;
    for (const Rank& rank : formed->ranks()) {
      if (rank.task == self_) tell(formed->key(), rank);
    }
  }
}

void GroupTable::AddLeaveMessages(const FormedGroup& formed, const Status& why,
                                  GroupActions* actions) const {
  Leave leave{
      .group = formed.key(), .formed = formed.id(), .completed = formed.completed(), .why = why};
  for (const Rank& rank : formed.ranks()) {
    if (rank.task == self_) leave.nonces.push_back(rank.nonce);
  }
  for (const TaskName& task : formed.tasks()) {
    if (task == self_) continue;
    // If a task has not connected yet, it has not received this task's Joins, so the group has not
    // formed there. The refusal revokes the Joins of that task's own ranks, too, so that they do
    // not wait for this group.
    Leave refusal = leave;
    for (const Rank& rank : formed.ranks()) {
      if (rank.task == task) refusal.nonces.push_back(rank.nonce);
    }
    actions->messages.push_back({task, leave, std::move(refusal)});
  }
}

}  // namespace penstock::collective

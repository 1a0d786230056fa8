// SPDX-License-Identifier: Apache-2.0
//
// FormedGroup: the checks that the ranks agree about an execution, and the texts of errors that say
// what is wrong or missing.
#include <set>
#include <string>

#include "absl/strings/str_join.h"
#include "distributed/collective/algorithms.h"
#include "distributed/collective/fingerprint.h"
#include "distributed/collective/formed_group.h"

namespace penstock::collective {
namespace {

constexpr size_t kForeseenMax = 1 << 20;  // maximum number of entries in foreseen_
constexpr size_t kRanksNamed = 8;         // maximum number of ranks that an error names

}  // namespace

Status FormedGroup::CheckPart(const Execution& execution, int rank,
                              const CollectiveCall& call) const {
  if (execution.parts.contains(rank)) {
    return InvalidArgument("instance ", call.instance_key, " of ", key().ToString(),
                           " is executed by ", call.device,
                           " twice at a time; give each node its own instance_key");
  }
  if (!execution.parts.empty() && execution.fingerprint != FingerprintOf(call)) {
    const CollectiveCall& other = execution.parts.begin()->second.call;
    return InvalidArgument("the ranks of instance ", call.instance_key, " of ", key().ToString(),
                           " disagree: ", call.device, " brings an ", Describe(call), ", ",
                           other.device, " an ", Describe(other));
  }
  for (const auto& [other, part] : execution.parts) {
    if (call.is_source && part.call.is_source) return TwoSources(self_, self_);
  }
  return OkStatus();
}

Status FormedGroup::DisagreementError(const CollectiveCall& call, int sender) const {
  return InvalidArgument("the ranks of instance ", call.instance_key, " of ", key().ToString(),
                         " disagree: ", call.device, " brings an ", Describe(call), ", ",
                         tasks_[sender].ToString(),
                         " a tensor of another type or shape, or another collective");
}

std::string FormedGroup::DescribeRanks() const {
  std::string text;
  for (size_t i = 0; i < ranks().size() && i < kRanksNamed; ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", ranks()[i].device.ToString());
  }
  if (ranks().size() > kRanksNamed) StrAppend(&text, ", ...");
  return text;
}

Status FormedGroup::TwoSources(int one, int other) const {
  return InvalidArgument("a broadcast of ", key().ToString(), " has two sources, ranks of ",
                         tasks_[one].ToString(), " and ", tasks_[other].ToString(),
                         "; expected one CollectiveBcastSend and ", key().size - 1,
                         " CollectiveBcastRecv at its ranks: ", DescribeRanks());
}

Status FormedGroup::NoteSource(Roles* roles, int sender) const {
  if (roles->source >= 0 && roles->source != sender) return TwoSources(roles->source, sender);
  roles->source = sender;
  return OkStatus();
}

Status FormedGroup::CheckForSource(const Execution& execution) const {
  const CollectiveCall& call = execution.parts.begin()->second.call;
  const int others = static_cast<int>(tasks_.size()) - 1;
  if (call.kind != CollectiveKind::kBroadcast || !execution.started) return OkStatus();
  if (execution.roles.source >= 0 || execution.roles.receivers < others) return OkStatus();
  return InvalidArgument("the broadcast of instance ", call.instance_key, " of ", key().ToString(),
                         " has no source: all its ranks receive; expected one CollectiveBcastSend "
                         "at one of its ranks: ",
                         DescribeRanks());
}

// Compares a message with what this task knows about its execution, and notes what the message says
// about a broadcast.
Status FormedGroup::CheckMessage(int sender, const Address& address) {
  const auto execution = executions_.find(address.execution);
  const bool begun = execution != executions_.end();
  if (!begun && foreseen_.size() >= kForeseenMax && !foreseen_.contains(address.execution)) {
    return ResourceExhausted(key().ToString(), ": ", tasks_[sender].ToString(), " is ahead by ",
                             foreseen_.size(), " executions, the most that it may be");
  }
  if (begun && execution->second.fingerprint != address.fingerprint) {
    return DisagreementError(execution->second.parts.begin()->second.call, sender);
  }
  Roles* const roles = begun ? &execution->second.roles : &Foresee(sender, address);
  if (address.tag == kAnnouncement.Number()) return NoteSource(roles, sender);
  if (address.tag != kReceiver.Number()) return OkStatus();
  ++roles->receivers;
  return begun ? CheckForSource(execution->second) : OkStatus();
}

Status FormedGroup::CheckRoomFor(const Mailbox::Slot& slot, const TaskName& from,
                                 const Tensor& value) const {
  const auto bytes = static_cast<int64_t>(value.bytes());
  if (mailbox_.bytes() + bytes <= options_.unclaimed_bytes_max || mailbox_.IsAwaited(slot)) {
    return OkStatus();
  }
  return ResourceExhausted(key().ToString(), ": ", mailbox_.bytes(), " bytes wait for ",
                           tasks_[self_].ToString(), " to take part, and ", from.ToString(),
                           " sends ", bytes, " more; at most ", options_.unclaimed_bytes_max,
                           " may wait");
}

std::string FormedGroup::Missing(int64_t instance) const {
  std::set<std::string> names;
  MutexLock lock(mu_);
  for (const auto& [id, execution] : executions_) {
    if (execution.parts.begin()->second.call.instance_key != instance) continue;
    for (int rank = first_rank_[self_]; rank < first_rank_[self_ + 1]; ++rank) {
      if (!execution.parts.contains(rank)) names.insert(ranks()[rank].device.ToString());
    }
    for (const int peer : mailbox_.PeersAwaitedBy(id)) {
      names.insert(peer < 0 ? "the broadcast's source" : tasks_[peer].ToString());
    }
  }
  if (names.empty()) return "its messages have not left yet";
  return StrCat("it waits for ", absl::StrJoin(names, ", "));
}

}  // namespace penstock::collective

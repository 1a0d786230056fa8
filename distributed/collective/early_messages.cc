// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/early_messages.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace penstock::collective {
namespace {

constexpr int64_t kWaitNanosMax = 60'000'000'000;
constexpr int64_t kMaxWaitNanos = static_cast<int64_t>(kMaxWaitSeconds * 1e9);
constexpr size_t kEndedGroupsMax = 4096;

}  // namespace

EarlyMessages::EarlyMessages(int64_t bytes_max)
    : bytes_max_(bytes_max), ended_groups_(kEndedGroupsMax) {}

void EarlyMessages::Keep(EarlyMessage message, int64_t now_ns) {
  const uint32_t id = message.address.group;
  if (ended_groups_.contains(id)) return;
  Expire(now_ns);
  const auto [found, is_new] = groups_.try_emplace(id);
  Group& group = found->second;
  if (is_new) group.since_ns = now_ns;
  if (!group.dropped.ok()) return;
  const auto bytes = static_cast<int64_t>(message.value.bytes() + sizeof(EarlyMessage));
  if (bytes_ + bytes <= bytes_max_) {
    group.bytes += bytes;
    bytes_ += bytes;
    group.messages.push_back(std::move(message));
    return;
  }
  Drop(group, ResourceExhausted("a message of ", bytes, " bytes from ", message.from.ToString(),
                                " was dropped before the group had formed here: ", bytes_,
                                " bytes wait already, at most ", bytes_max_, " may"));
}

void EarlyMessages::Drop(Group& group, Status why) {
  group.dropped = std::move(why);
  bytes_ -= std::exchange(group.bytes, 0);
  group.messages.clear();
}

EarlyMessages::Group EarlyMessages::Take(uint32_t id) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return {};
  Group group = std::move(found->second);
  bytes_ -= group.bytes;
  groups_.erase(found);
  return group;
}

void EarlyMessages::Forget(uint32_t id) {
  ended_groups_.Add(id);
  const auto found = groups_.find(id);
  if (found != groups_.end()) Erase(found);
}

void EarlyMessages::ForgetGroupsOf(const TaskName& task) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    const std::vector<EarlyMessage>& messages = it->second.messages;
    const bool lacks = std::any_of(messages.begin(), messages.end(),
                                   [&](const EarlyMessage& e) { return e.from == task; });
    it = lacks ? Erase(it) : std::next(it);
  }
}

void EarlyMessages::Expire(int64_t now_ns) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    Group& group = it->second;
    const int64_t waited_ns = now_ns - group.since_ns;
    if (waited_ns > kWaitNanosMax && !group.messages.empty()) {
      Drop(group, Unavailable("messages of ", group.messages.front().from.ToString(),
                              " have waited longer than a minute for the group to form here, and "
                              "were dropped"));
    }
    it = waited_ns > kMaxWaitNanos ? Erase(it) : std::next(it);
  }
}

EarlyMessages::Groups::iterator EarlyMessages::Erase(Groups::iterator group) {
  bytes_ -= group->second.bytes;
  return groups_.erase(group);
}

}  // namespace penstock::collective

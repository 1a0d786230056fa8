// SPDX-License-Identifier: Apache-2.0
//
// EarlyMessages: keeps messages of groups that have formed in other tasks, but not yet here. It
// keeps them for a minute. That is ample, because the group forms here as soon as the other tasks'
// Joins arrive. A group that forms later fails, because its messages were dropped. Ended groups
// are remembered, so that no messages are kept for them.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/base/status.h"
#include "core/op/task_name.h"
#include "core/tensor/tensor.h"
#include "distributed/collective/formed_group.h"
#include "distributed/collective/recent_numbers.h"

namespace penstock::collective {

// How long the call of one rank waits for the other ranks, unless the call sets a timeout.
inline constexpr double kMaxWaitSeconds = 600;

class EarlyMessages {
 public:
  struct EarlyMessage {
    TaskName from;
    Address address;
    Tensor value;
  };
  struct Group {
    int64_t since_ns = 0;
    int64_t bytes = 0;
    std::vector<EarlyMessage> messages;
    Status dropped;  // why messages were dropped: the group fails with this error when it forms
  };

  // `bytes_max`: the limit for the messages of all groups together.
  explicit EarlyMessages(int64_t bytes_max);

  // Keeps `message`, or drops all messages of its group if there is no room. Drops `message` if its
  // group has ended or has lost messages.
  void Keep(EarlyMessage message, int64_t now_ns);
  // Returns and removes the messages of a group that forms here.
  Group Take(uint32_t id);
  // Drops the messages of a group that has ended, and any that arrive later.
  void Forget(uint32_t id);
  // Drops all messages of each group in which `task` has sent a message, because that group cannot
  // form without `task`.
  void ForgetGroupsOf(const TaskName& task);
  // Drops the messages that have waited for too long, and remembers for kMaxWaitSeconds that their
  // groups have lost messages.
  void Expire(int64_t now_ns);
  int64_t bytes() const { return bytes_; }

 private:
  using Groups = std::map<uint32_t, Group>;  // by id
  Groups::iterator Erase(Groups::iterator group);
  // Drops the messages of a group, which fails with `why` when it forms.
  void Drop(Group& group, Status why);

  const int64_t bytes_max_;
  int64_t bytes_ = 0;
  Groups groups_;
  RecentNumbers ended_groups_;  // ids of groups
};

}  // namespace penstock::collective

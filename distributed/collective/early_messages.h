// SPDX-License-Identifier: Apache-2.0
//
// EarlyMessages: messages of groups that have formed elsewhere, and not yet here. They wait for a
// minute: a group forms here as soon as the same messages about its ranks have come. One that forms
// later fails, because its messages were dropped. Groups that have ended are remembered, so that
// nothing is kept for them.
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

// How long ranks are waited for, if their calls do not say.
inline constexpr double kFormSeconds = 600;

class EarlyMessages {
 public:
  struct Early {
    TaskName from;
    Address address;
    Tensor value;
  };
  struct Group {
    int64_t since_ns = 0;
    int64_t bytes = 0;
    std::vector<Early> messages;
    Status dropped;  // why messages were dropped: the group has to fail with it when it forms
  };

  // `bytes_max`: of all messages.
  explicit EarlyMessages(int64_t bytes_max);

  // If there is no room, drops all messages of its group.
  void Keep(Early message, int64_t now_ns);
  // Returns, and forgets, what has come for a group that forms here.
  Group Take(uint32_t id);
  // Drops what has come, and what will come, for a group that has ended.
  void Forget(uint32_t id);
  // Drops the groups from which messages of `task` have come: they cannot form without it.
  void ForgetGroupsOf(const TaskName& task);
  // Drops messages that have waited for too long. That they were dropped is remembered for
  // kFormSeconds.
  void Expire(int64_t now_ns);
  int64_t bytes() const { return bytes_; }

 private:
  using Groups = std::map<uint32_t, Group>;  // by id
  Groups::iterator Erase(Groups::iterator group);
  // Drops the messages of a group, which has to fail with `why`.
  void Drop(Group& group, Status why);

  const int64_t bytes_max_;
  int64_t bytes_ = 0;
  Groups groups_;
  RecentNumbers gone_;  // ids
};

}  // namespace penstock::collective

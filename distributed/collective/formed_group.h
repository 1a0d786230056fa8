// SPDX-License-Identifier: Apache-2.0
//
// FormedGroup: a group whose ranks have met, as one of its tasks sees it: which ranks there are,
// and the collectives that they execute. A group that has formed once ends at the first failure,
// and forms anew under another id: so nothing of an older attempt is ever taken for a newer one.
//
// Ranks are in order of their devices' names, so those of a task are neighbours. A task first
// merges what its own ranks bring; then each task sends and receives once, however many ranks it
// has. Executions that belong together are found by the step id if all ranks are of one session,
// else by counting: the n-th execution of an instance by one rank meets the n-th by the others.
//
// Thread-safe. Held by shared pointers: the Exchange's, and those of executions that run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/op/device_name.h"
#include "core/op/task_name.h"
#include "core/runtime/collective.h"
#include "core/runtime/rendezvous.h"
#include "distributed/collective/mailbox.h"
#include "distributed/collective/messages.h"
#include "distributed/collective/peer_link.h"
#include "distributed/collective/recent_numbers.h"
#include "distributed/transport/transport.h"

namespace penstock::collective {

struct Rank {
  DeviceName device;
  TaskName task;
  std::string session;
  uint64_t nonce = 0;  // of its Join
};

// The part of a message's rendezvous key that says what it belongs to.
struct Address {
  static constexpr uint64_t kExecutionMask = (uint64_t{1} << 48) - 1;

  uint32_t group = 0;        // FormedGroup::id
  uint64_t execution = 0;    // 48 bits
  uint16_t fingerprint = 0;  // of kind, type and size, so that ranks which disagree are found out
  uint32_t tag = 0;

  uint64_t frame() const { return uint64_t{group} << 32 | execution >> 16; }
  uint64_t iteration() const {
    return (execution & 0xffff) << 48 | uint64_t{fingerprint} << 32 | tag;
  }
  static Address Of(const HashedKey& key) {
    return {.group = static_cast<uint32_t>(key.frame() >> 32),
            .execution = (key.frame() & 0xffffffff) << 16 | key.iteration() >> 48,
            .fingerprint = static_cast<uint16_t>(key.iteration() >> 32),
            .tag = static_cast<uint32_t>(key.iteration())};
  }
};

inline constexpr char kDataKey[] = "collective", kMessageKey[] = "collective ranks";
// The key under which `from` sends to `to`.
HashedKey KeyBetween(const TaskName& from, const TaskName& to, const char* tensor);

class FormedGroup final : public std::enable_shared_from_this<FormedGroup> {
 public:
  struct Options {
    GroupKey key;
    std::vector<Rank> ranks;  // sorted by SortRanks
    TaskName self;            // the task that this is; it has a rank
    Scheduler* threads = nullptr;
    std::function<void(const TaskName&, const HashedKey&, Tensor, TensorSink::HandedOver)> send;
    // Ends the group everywhere. Called without locks.
    std::function<void(FormedGroup&, const Status&)> fail;
    // The most bytes of messages that wait for executions which have not begun here.
    int64_t unclaimed_bytes_max = int64_t{16} << 30;
  };
  explicit FormedGroup(Options options);

  static void SortRanks(std::vector<Rank>* ranks);
  // The same in all tasks; never 0.
  static uint32_t IdOf(const std::vector<Rank>& ranks);

  uint32_t id() const { return id_; }
  const GroupKey& key() const { return options_.key; }
  const std::vector<Rank>& ranks() const { return options_.ranks; }
  const std::vector<TaskName>& tasks() const { return tasks_; }
  bool one_session() const { return one_session_; }
  bool Has(const TaskName& task) const { return PeerOf(task) >= 0; }
  // The number of a device's rank; -1: it has none.
  int RankOf(const DeviceName& device) const;

  // One of this task's ranks takes part. `collected` as Collectives::Collect's.
  void Begin(int rank, int64_t step_id, CollectiveCall call, Collectives::Collected collected);
  // A message of an execution.
  void Receive(const TaskName& from, const Address& address, Tensor value);

  // Ends executions that run with `why`, but for those in `completed`, whose messages from the task
  // that has left are all on their way; and all that would begin later. `why` must not be OK.
  void End(const Status& why, const std::vector<uint64_t>& completed = {});
  // `task` has left, and has completed these. From now on its loss is no failure.
  void Left(const TaskName& task, const Status& why, const std::vector<uint64_t>& completed);
  bool HasLeft(const TaskName& task) const;
  bool ended() const;
  bool running() const;
  // The executions that this task has completed last, as End takes them.
  std::vector<uint64_t> completed() const;
  // How many executions have begun elsewhere, as far as messages say, and not yet here. At most
  // kReceiversMax of them are known from receivers of a broadcast alone: these also come late, for
  // executions that have ended here and were forgotten, so the oldest are forgotten in turn.
  size_t foreseen() const;
  static constexpr size_t kReceiversMax = 4096;
  // Says which ranks and tasks the executions of an instance wait for.
  std::string Missing(int64_t instance) const;

 private:
  class TaskLink;
  struct Part {
    CollectiveCall call;
    Collectives::Collected collected;
  };
  // The tasks of a broadcast, as far as they are known.
  struct Roles {
    int source = -1;    // the number of the task that sends
    int receivers = 0;  // the other tasks that have said that they only receive; at task 0
  };
  struct Execution {
    uint16_t fingerprint = 0;
    Roles roles;
    std::map<int, Part> parts;  // by rank, of this task
    bool started = false;
    // Once started:
    bool ran = false;    // the algorithm has ended well
    int64_t unsent = 0;  // messages that have not left
    Tensor result;
  };
  // An execution that has begun elsewhere, and not yet here.
  struct Foreseen {
    uint16_t fingerprint = 0;
    int sender = 0;               // the number of the task whose message came first
    bool only_receivers = false;  // nothing else has come
    Roles roles = {};
  };
  int PeerOf(const TaskName& task) const;
  uint64_t ExecutionOf(int rank, int64_t step_id, const CollectiveCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckPart(const Execution& execution, int rank, const CollectiveCall& call) const;
  // Adds a rank's part. `*complete` if it is the last of this task's.
  Status AddPart(uint64_t id, int rank, CollectiveCall call, Collectives::Collected* collected,
                 bool* complete) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckMessage(int sender, const Address& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes a message of an execution that has not begun here.
  Roles& Foresee(int sender, const Address& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // ResourceExhausted if nobody waits for the message, and it is one too many.
  Status CheckRoomFor(const Mailbox::Slot& slot, const TaskName& from, const Tensor& value) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Disagree(const CollectiveCall& call, int sender) const;
  // Notes that task `sender` sends in a broadcast.
  Status NoteSource(Roles* roles, int sender) const;
  Status TwoSources(int one, int other) const;
  // InvalidArgument if all tasks have begun the broadcast, and none sends.
  Status CheckForSource(const Execution& execution) const;
  std::string DescribeRanks() const;
  void Start(uint64_t id);
  void Run(uint64_t id, const std::vector<CollectiveCall>& calls);
  StatusOr<Tensor> MergeOwn(const std::vector<CollectiveCall>& calls) const;
  void RunAlgorithm(uint64_t id, const std::vector<CollectiveCall>& calls, Tensor input,
                    Tensor output);
  void Ran(uint64_t id, Tensor result, const Status& status);
  void HandedOver(uint64_t id);
  void RememberCompleted(uint64_t id, const Execution& execution)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Finish(std::map<int, Part> parts, const StatusOr<Tensor>& result);
  Tensor ResultOf(int rank, const CollectiveCall& call, const Tensor& result) const;
  void Send(uint64_t execution, uint16_t fingerprint, int peer, Tag tag, Tensor value);
  void Recv(uint64_t execution, int peer, Tag tag, PeerLink::Received received);

  const Options options_;
  const uint32_t id_;
  std::vector<TaskName> tasks_;  // in order of their ranks
  std::vector<int> first_rank_;  // of each task; tasks + 1 of them
  std::vector<HashedKey> keys_;  // to each task
  int self_ = 0;                 // the number of this task
  bool one_session_ = true;

  mutable Mutex mu_;
  Status ended_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> go_on_ ABSL_GUARDED_BY(mu_);  // executions that may end well all the same
  std::map<uint64_t, Execution> executions_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<int, int64_t>, int64_t> counts_ ABSL_GUARDED_BY(mu_);  // by rank, instance
  Mailbox mailbox_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Foreseen> foreseen_ ABSL_GUARDED_BY(mu_);  // by execution
  // Executions that a receiver was the first to tell of, the oldest first.
  std::deque<uint64_t> receivers_ ABSL_GUARDED_BY(mu_);
  std::set<TaskName> left_ ABSL_GUARDED_BY(mu_);
  RecentNumbers completed_ ABSL_GUARDED_BY(mu_);
  RecentNumbers sent_ ABSL_GUARDED_BY(mu_);  // those of them whose broadcast's source was here
};

}  // namespace penstock::collective

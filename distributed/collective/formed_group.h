// SPDX-License-Identifier: Apache-2.0
//
// FormedGroup: a group all of whose ranks have joined, as seen by one of its tasks: the ranks, and
// the collectives that they execute. A formed group ends at the first failure. The ranks then form
// a group with another id, so that messages of the old group are never mistaken for messages of
// the new one.
//
// Ranks are ordered by their devices' names, so the ranks of one task are neighbours. A task
// first merges the inputs of its own ranks; then it takes part in the algorithm as one peer,
// however many ranks it has. If all ranks belong to one session, calls with the same step id belong
// to one execution. Else each rank counts its calls with an instance key, and the n-th calls of
// all ranks belong to one execution.
//
// formed_group.cc has the ranks, calls and messages, formed_group_run.cc the executions, and
// formed_group_checks.cc the checks of calls and messages, and the errors.
//
// Thread-safe. The Exchange and running executions hold shared pointers to it.
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
#include "distributed/collective/address.h"
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
  uint64_t nonce = 0;  // the nonce of its Join
};

class FormedGroup final : public std::enable_shared_from_this<FormedGroup> {
 public:
  struct Options {
    GroupKey key;
    std::vector<Rank> ranks;  // sorted by SortRanks
    TaskName self;            // this task; it has a rank
    Scheduler* threads = nullptr;
    std::function<void(const TaskName&, const HashedKey&, Tensor, TensorSink::HandedOver)> send;
    // Ends the group in all tasks. Called without locks.
    std::function<void(FormedGroup&, const Status&)> fail;
    // The maximum number of bytes of messages that wait for executions which have not begun here.
    int64_t unclaimed_bytes_max = int64_t{16} << 30;
  };
  explicit FormedGroup(Options options);

  static void SortRanks(std::vector<Rank>* ranks);
  // Returns the group's id: the same in all tasks, never 0.
  static uint32_t IdOf(const std::vector<Rank>& ranks);

  uint32_t id() const { return id_; }
  const GroupKey& key() const { return options_.key; }
  const std::vector<Rank>& ranks() const { return options_.ranks; }
  const std::vector<TaskName>& tasks() const { return tasks_; }
  bool one_session() const { return one_session_; }
  bool Has(const TaskName& task) const { return PeerOf(task) >= 0; }
  // Returns the number of a device's rank; -1: it has none.
  int RankOf(const DeviceName& device) const;

  // Begins the call of one of this task's ranks. `collected` is called as by
  // Collectives::Collect.
  void Begin(int rank, int64_t step_id, CollectiveCall call, Collectives::Collected collected);
  // Takes a message of an execution.
  void Receive(const TaskName& from, const Address& address, Tensor value);

  // Ends the running executions with `why`, except those in `completed` that all of this task's
  // ranks have begun: the task that left the group has already sent all its messages for them.
  // Executions that begin later also fail. `why` must not be OK.
  void End(const Status& why, const std::vector<uint64_t>& completed = {});
  // Notes that `task` has left after completing the executions in `completed`, and calls
  // End(why, completed). From now on the group does not fail if the task is lost.
  void NoteLeft(const TaskName& task, const Status& why, const std::vector<uint64_t>& completed);
  bool HasLeft(const TaskName& task) const;
  bool ended() const;
  bool running() const;
  // Returns the executions that this task completed last, in the form that End takes.
  std::vector<uint64_t> completed() const;
  // Returns how many executions have begun in other tasks, but not yet here. At most kReceiversMax
  // of them are known only from kReceiver messages. Such a message may arrive after its execution
  // has ended here and was forgotten, and would stay forever; so the oldest entries are dropped.
  size_t foreseen() const;
  static constexpr size_t kReceiversMax = 4096;
  // Returns a text that says which ranks and tasks the executions of an instance wait for.
  std::string Missing(int64_t instance) const;

 private:
  class TaskLink;
  struct Part {
    CollectiveCall call;
    Collectives::Collected collected;
  };
  // The source and the receivers of a broadcast, as far as they are known.
  struct Roles {
    int source = -1;    // the number of the task that sends
    int receivers = 0;  // how many other tasks said that they only receive; counted by task 0
  };
  struct Execution {
    uint16_t fingerprint = 0;
    Roles roles;
    std::map<int, Part> parts;  // by rank, of this task
    bool started = false;
    // Used once the execution has started:
    bool ran = false;    // the algorithm has ended without an error
    int64_t unsent = 0;  // messages that have not been sent
    Tensor result;
  };
  // An execution that has begun in another task, but not yet here.
  struct Foreseen {
    uint16_t fingerprint = 0;
    int sender = 0;               // the number of the task whose message came first
    bool only_receivers = false;  // true if only kReceiver messages have come
    Roles roles = {};
  };
  int PeerOf(const TaskName& task) const;
  uint64_t ExecutionOf(int rank, int64_t step_id, const CollectiveCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckPart(const Execution& execution, int rank, const CollectiveCall& call) const;
  // Adds a rank's call to an execution. Sets `*complete` if all of this task's ranks have now
  // called.
  Status AddPart(uint64_t id, int rank, CollectiveCall call, Collectives::Collected* collected,
                 bool* complete) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckMessage(int sender, const Address& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the entry for an execution that has begun in another task, after a message from task
  // number `sender`.
  Roles& Foresee(int sender, const Address& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // ResourceExhausted if no algorithm waits for the message and there is no room to keep it.
  Status CheckRoomFor(const Mailbox::Slot& slot, const TaskName& from, const Tensor& value) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status DisagreementError(const CollectiveCall& call, int sender) const;
  // Notes that task number `sender` is the source of a broadcast. InvalidArgument if another task
  // is a source, too.
  Status NoteSource(Roles* roles, int sender) const;
  Status TwoSources(int one, int other) const;
  // InvalidArgument if all tasks have begun the broadcast and none of them is its source.
  Status CheckForSource(const Execution& execution) const;
  std::string DescribeRanks() const;
  void Start(uint64_t id);
  void Run(uint64_t id, const std::vector<CollectiveCall>& calls);
  void RunAlgorithm(uint64_t id, const std::vector<CollectiveCall>& calls, Tensor input,
                    Tensor output);
  void NoteRan(uint64_t id, Tensor result, const Status& status);
  void HandedOver(uint64_t id);
  void RememberCompleted(uint64_t id, const Execution& execution)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Finish(std::map<int, Part> parts, const StatusOr<Tensor>& result);
  void Send(uint64_t execution, uint16_t fingerprint, int peer, Tag tag, Tensor value);
  void Recv(uint64_t execution, int peer, Tag tag, PeerLink::Received received);

  const Options options_;
  const uint32_t id_;
  std::vector<TaskName> tasks_;  // in the order of their ranks
  std::vector<int> first_rank_;  // first rank of each task; tasks + 1 entries
  std::vector<HashedKey> keys_;  // the key for messages to each task
  int self_ = 0;                 // the number of this task
  bool one_session_ = true;

  // Locked after the mutex of the Exchange. Not held while functions of `options_` or continuations
  // are called, because they may lock the Exchange.
  mutable Mutex mu_;
  Status ended_ ABSL_GUARDED_BY(mu_);
  // Executions that may still end without an error.
  std::set<uint64_t> may_succeed_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Execution> executions_ ABSL_GUARDED_BY(mu_);
  // The number of executions so far, by rank and instance.
  std::map<std::pair<int, int64_t>, int64_t> counts_ ABSL_GUARDED_BY(mu_);
  Mailbox mailbox_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Foreseen> foreseen_ ABSL_GUARDED_BY(mu_);  // by execution
  // Executions first known from a receiver of a broadcast, oldest first.
  std::deque<uint64_t> receivers_ ABSL_GUARDED_BY(mu_);
  std::set<TaskName> left_ ABSL_GUARDED_BY(mu_);
  RecentNumbers completed_ ABSL_GUARDED_BY(mu_);
  // The executions in completed_ that were broadcasts with this task as the source.
  RecentNumbers sent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collective

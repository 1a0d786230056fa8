// SPDX-License-Identifier: Apache-2.0
//
// ElasticGroup: a group of workers that train together (collective_replicas.h) and that changes
// during the training. If a worker is lost, the others go on without it; when it is back, it joins
// them.
//
//   ElasticGroup group(program, {.workers = {"/job:worker/task:0", ...}, .worker = 1,
//                                .target = target});
//   CollectiveReplicas replicas(program, {.workers = 3, .worker = 1, .group = &group});
//   ...
//   Output loss = replicas.Average(loss);  // before the gradients, see below
//   ... replicas.Average(gradients) ...
//   options.agree = replicas.Agree();
//   options.group = &group;   // TrainingOptions
//
// How workers agree: each worker announces its client in its own task (presence.h), and asks all
// tasks for their incarnations and for their clients' announcements. The worker proposes as members
// the workers that answer and whose client is present, and a hash of their incarnations as the key
// of a collective group. That group forms only if all of its members propose the same key, so no
// worker has to decide for the others; workers that disagree ask again. The members then exchange
// their step numbers in one all-gather. The chief is the member with the lowest index.
//
// The members go on with the values of the member that has the highest step. An update begins only
// when all averages of its step have arrived. So a worker has applied a step completely or not at
// all, and no step is lost or applied in part when another worker dies. If no member has usable
// values (all were restarted, or one was lost while it sent them), the chief restores the newest
// checkpoint. The current chief saves the checkpoints, so all workers must share the directory.
//
// A training starts with all workers, and goes on with `min_workers` of them or more. The default
// is more than half, so that if the network is split, only one side goes on. The chief asks every
// rejoin_seconds whether a lost worker is back. If it is, all members stop after the same step, and
// form a new group with it.
//
// If the data of a worker end, the training ends for all after the same step. A worker that is told
// to stop, by a signal or by RequestStop, only leaves, and the others go on without it. After
// present_seconds or a little more they also go on without a worker whose client has died although
// its task still answers, such as a `penstock server`.
//
// At the end the members wait until the chief has saved the last checkpoint. If the chief is lost
// before, they form a group without it, and the next chief saves. If they are too few for a group,
// the training ends with an error. Members that are told to stop, by a hook, too, do not wait.
//
// Batches: BatchNumber gives each worker and step its own batch number. It uses every number once,
// also if the group changes. The sums of a step depend only on its members and their batches, never
// on the order of arrival.
//
// Adds the variables elastic/batches and elastic/update to the program and to its checkpoints. An
// invalid argument sets the program's error. Used by the thread of TrainingLoop::Run; the group has
// threads of its own that announce the client, ask whether lost workers are back, and watch another
// member. Borrows the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/allreduce/elastic_workers.h"
#include "client/allreduce/member_watch.h"
#include "client/allreduce/periodic.h"
#include "client/program.h"
#include "client/training_group.h"

namespace penstock::client {

class ElasticGroup final : public TrainingGroup {
 public:
  using Options = ElasticOptions;
  ElasticGroup(Program& program, Options options);

  // Return the number of workers in the group that this worker has joined last, and this worker's
  // rank there.
  int size() const { return static_cast<int>(members_.size()); }
  int rank() const { return rank_; }
  // Returns the key of the collective group that was joined last. Two groups have the same key only
  // if they have the same members, in the same incarnations.
  int32_t key() const { return joined_key_; }
  // Returns the number of the batch with which this worker trains in the step that begins with
  // `global_step`. REQUIRES that the worker is in a group.
  int64_t BatchNumber(int64_t global_step) const;

  // For CollectiveReplicas: return the inputs group_size and group_key of its collectives.
  Output group_size() const { return group_size_; }
  Output group_key() const { return group_key_; }
  // For CollectiveReplicas: returns an op that begins an update when all of `averages` have
  // arrived.
  Output BeginUpdate(Outputs averages);
  // Sets the ops that give the members the same values: for the worker that sends them, for those
  // that receive them, and for those that have them already.
  void SetAgree(Output send, Output receive, Output drop);

  // TrainingGroup:
  bool is_chief() const override { return rank_ == 0; }
  bool is_member() const override { return joined_ && !regroup_; }
  bool HasValues(Session& session) override;
  StatusOr<std::unique_ptr<SessionInterface>> NewSession(
      const SessionOptions& options) const override {
    return workers_.NewSession(options);
  }
  const std::string& task() const override { return workers_.task(options_.worker); }
  StatusOr<std::vector<std::string>> FindMembers() override;
  bool too_few_members() const override { return too_few_members_; }
  StatusOr<Plan> Join(Session& session, const RunOptions& options, bool has_values) override;
  Status ShareValues(Session& session, const RunOptions& options) override;
  Status AwaitLastSave(Session& session, const RunOptions& options) override;
  void Leave(Session& session) override;
  void Retire() override { workers_.Withdraw(); }
  void NoteEndOfData() override { data_ended_ = true; }
  bool ends() const override { return ends_; }
  std::string Describe() const override;

  // TrainingHook:
  Status SessionReady(Session& session, int64_t global_step) override;
  Status BeforeStep(int64_t global_step) override;
  Outputs ExtraFetches(int64_t global_step) override { return {regroup_votes_}; }
  void Fetched(std::vector<Tensor> values) override;
  Status AfterStep(const StepResult& result, bool* stop) override;
  Status StepFailed(const Status& why) override;
  void SessionEnds() override;

 private:
  // Sent by each member to the others in the all-gather.
  struct Member {
    int worker = 0;
    int64_t step = -1;    // -1: it has no usable values
    int64_t batches = 0;  // number of batches used for these values
    bool started = false;
    bool data_ended = false;
  };
  enum class Role { kNone, kSend, kReceive, kDrop };

  void CheckOptions();
  void AddNodes();
  Output Reduce(Output value, Output key, int instance);
  int min_workers() const;
  StatusOr<Member> OwnMember(Session& session, bool has_values);
  StatusOr<std::vector<Member>> Gather(Session& session, const RunOptions& options, Member own);
  Status CheckGathered(const std::vector<Member>& members) const;
  void PauseNewMembers();
  Plan MakePlan(const std::vector<Member>& members);
  void AskForLostWorkers(const std::map<int, int64_t>& lost);
  Status RunWithMembers(Session& session, const Outputs& targets, const RunOptions& options);
  void EndCollectives(Session& session);
  Status Explain(const Status& why) const;

  Program& program_;
  const Options options_;
  ElasticWorkers workers_;

  // Nodes:
  std::optional<Variable> size_, key_, regroup_flag_;  // local to each worker
  std::optional<Variable> batches_, update_;  // batches used so far; step of the last update
  Output group_size_, group_key_, control_key_;
  Output new_size_, new_key_;            // placeholders
  Output set_group_, set_regroup_flag_;  // ops: set size_ and key_; set regroup_flag_ to 1
  Output own_member_, gathered_, regroup_votes_, barrier_, saved_, leave_, end_update_;
  Output send_, receive_, drop_;

  std::vector<int> proposed_;  // indices of workers, increasing
  int32_t proposed_key_ = 0;
  bool too_few_members_ = false;
  std::vector<int> members_;                // workers of the last joined group, increasing
  int32_t joined_key_ = 0;                  // key of the same group
  std::map<int, int64_t> paused_until_ns_;  // by worker: not proposed before this time
  int rank_ = 0;
  Role role_ = Role::kNone;
  bool started_ = false;       // this worker has joined a group and has had values to train with
  bool values_mixed_ = false;  // the variables may have values of several steps
  bool data_ended_ = false;    // this worker's data have ended
  bool ends_ = false;          // the data of a member have ended
  int64_t batches_before_ = 0, joined_at_step_ = 0;

  Session* session_ = nullptr;  // not null while steps may run
  bool joined_ = false;         // the session's group has formed
  bool regroup_ = false;        // the last step said that lost workers are back
  bool regroup_requested_ = false;
  std::atomic<bool> lost_worker_found_{false};

  MemberWatch watch_;
  // Sets lost_worker_found_ while the chief trains without some workers.
  std::unique_ptr<Periodic> asking_;
};

}  // namespace penstock::client

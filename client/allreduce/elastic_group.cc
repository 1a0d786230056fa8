// SPDX-License-Identifier: Apache-2.0
#include "client/allreduce/elastic_group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "client/device_setter.h"
#include "client/seconds.h"
#include "client/task_loss.h"
#include "core/op/device_name.h"
#include "core/op/gradient.h"
#include "distributed/session/session.h"

namespace penstock::client {
namespace {

// kLeaveSeconds: the timeout of Leave. kRowValues: the number of values that each member sends in
// the all-gather.
constexpr double kLeaveSeconds = 0.1;
constexpr int64_t kRowValues = 5;

// Adds `text` to an FNV-1a hash. (std::hash may differ between workers.)
uint64_t HashText(uint64_t hash, const std::string& text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Output AddPlaceholder(Program& program, DType dtype, const PartialShape& shape, const char* name) {
  return CallIn(program, "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, name);
}

// If the error means that a group could not be formed, returns it as Unavailable, after which the
// loop tries again.
Status TryAgain(const Status& status) {
  const bool again = IsTaskLoss(status) || absl::IsDeadlineExceeded(status) ||
                     absl::IsOutOfRange(status) || absl::IsAlreadyExists(status);
  return again ? Unavailable("the group has not formed: ", status.message()) : status;
}

}  // namespace

ElasticGroup::ElasticGroup(Program& program, Options options)
    : program_(program),
      options_(std::move(options)),
      workers_(options_),
      watch_({.patience_seconds = options_.present_seconds,
              .client_is_gone = [this](int worker) { return workers_.ClientIsGone(worker); },
              .env = options_.env,
              .scheduler = options_.scheduler}) {
  CheckOptions();
  if (program.status().ok()) AddNodes();
}

void ElasticGroup::CheckOptions() {
  const auto workers = static_cast<int>(options_.workers.size());
  if (options_.worker < 0 || options_.worker >= workers) {
    program_.Fail(
        InvalidArgument("elastic group: there is no worker ", options_.worker, " of ", workers));
  }
  if (options_.min_workers < 0 || options_.min_workers > workers) {
    program_.Fail(InvalidArgument("elastic group: min_workers=", options_.min_workers,
                                  ": expected 0, for more than half, or up to ", workers));
  }
  for (const std::string& worker : options_.workers) {
    const auto task = DeviceName::Parse(worker);
    if (!task.ok() || !task->job || !task->task) {
      program_.Fail(InvalidArgument("elastic group: worker '", worker,
                                    "': expected a task, such as /job:worker/task:0"));
    }
  }
  for (const double seconds : {options_.ask_seconds, options_.form_seconds, options_.rejoin_seconds,
                               options_.present_seconds}) {
    if (!(seconds > 0)) {
      program_.Fail(InvalidArgument(
          "elastic group: ask_seconds=", options_.ask_seconds,
          ", form_seconds=", options_.form_seconds, ", rejoin_seconds=", options_.rejoin_seconds,
          ", present_seconds=", options_.present_seconds, ": all must be more than 0"));
    }
  }
}

Output ElasticGroup::Reduce(Output value, Output key, int instance) {
  const Output instance_key = Constant(program_, Tensor::Scalar<int32_t>(instance));
  return Call("CollectiveReduceV2", {value, group_size_, key, instance_key, Outputs()},
              {{"merge_op", "Add"}, {"final_op", "Id"}});
}

void ElasticGroup::AddNodes() {
  const std::string task = this->task();
  const auto device = program_.DeviceFunctionScope(OnDevice(task));
  const Variable global_step = program_.GlobalStep();
  const auto names = program_.NameScope("elastic");
  // Counts and keys are in host memory.
  auto host = std::make_optional(program_.DeviceScope(StrCat(task, "/device:CPU:0")));
  const VariableOptions local{.dtype = DType::kInt32, .local = true};
  const VariableOptions shared{.dtype = DType::kInt64, .trainable = false};
  size_.emplace(program_, "size", Shape(), Zeros(), local);
  key_.emplace(program_, "key", Shape(), Zeros(), local);
  regroup_flag_.emplace(program_, "wanted", Shape(), Zeros(), local);
  batches_.emplace(program_, "batches", Shape(), Zeros(), shared);
  update_.emplace(program_, "update", Shape(), Zeros(), shared);
  group_size_ = size_->Read();
  group_key_ = key_->Read();
  // The key of the control group, a second group of the same workers; its ranks are the workers'
  // CPUs.
  control_key_ = group_key_ + 1;
  new_size_ = AddPlaceholder(program_, DType::kInt32, PartialShape::Scalar(), "new_size");
  new_key_ = AddPlaceholder(program_, DType::kInt32, PartialShape::Scalar(), "new_key");
  set_group_ = program_.Group({size_->Assign(new_size_), key_->Assign(new_key_)}, "set_group");
  set_regroup_flag_ = regroup_flag_->Assign(Constant(program_, Tensor::Scalar<int32_t>(1)));
  own_member_ = AddPlaceholder(program_, DType::kInt64, {1, kRowValues}, "own_member");
  gathered_ = Call("CollectiveGatherV2",
                   {own_member_, group_size_, control_key_,
                    Constant(program_, Tensor::Scalar<int32_t>(1)), Outputs()},
                   {{"timeout_seconds", static_cast<float>(options_.form_seconds)}});
  regroup_votes_ = Reduce(regroup_flag_->Read(), control_key_, 2);
  const Output leave_control =
      Reduce(Constant(program_, Tensor::Scalar<int32_t>(0)), control_key_, 3);
  barrier_ = Reduce(Constant(program_, Tensor::Scalar<int32_t>(0)), control_key_, 4);
  saved_ = Reduce(Constant(program_, Tensor::Scalar<int32_t>(0)), control_key_, 5);
  end_update_ = update_->Assign(global_step.Read());
  host.reset();
  // The ranks of the main group are the devices that compute.
  const Output leave_main = Reduce(Constant(program_, Tensor::Scalar<float>(0)), group_key_, 0);
  leave_ = program_.Group({leave_control, leave_main}, "leave");
}

Output ElasticGroup::BeginUpdate(Outputs averages) {
  if (!program_.status().ok()) return {&program_, -1, 0};
  averages.push_back(regroup_votes_);
  const auto names = program_.NameScope("elastic");
  const auto after = program_.ControlDependencies(averages);
  const Output begun = update_->Assign(program_.GlobalStep().Read() + 1);
  // Counts the batches after `begun`: if the step is cancelled between the two, `update_` shows
  // that the values are those of an incomplete update.
  const auto counted = program_.ControlDependencies({begun});
  return program_.Group(
      {begun, batches_->AssignAdd(Call("Cast", {group_size_}, {{"DstT", DType::kInt64}}))},
      "begin_update");
}

void ElasticGroup::SetAgree(Output send, Output receive, Output drop) {
  send_ = send;
  receive_ = receive;
  drop_ = drop;
}

int64_t ElasticGroup::BatchNumber(int64_t global_step) const {
  return batches_before_ + (global_step - joined_at_step_) * size() + rank_;
}

int ElasticGroup::min_workers() const {
  if (options_.min_workers > 0) return options_.min_workers;
  return workers_.size() / 2 + 1;
}

StatusOr<std::vector<std::string>> ElasticGroup::FindMembers() {
  too_few_members_ = false;
  RETURN_IF_ERROR(program_.status());
  const Status announced = workers_.Announce();
  if (!announced.ok()) return TryAgain(announced);
  std::vector<int> asked;
  const int64_t now_ns = options_.env->NowNanos();
  for (int w = 0; w < workers_.size(); ++w) {
    const auto paused = paused_until_ns_.find(w);
    if (paused == paused_until_ns_.end() || paused->second <= now_ns) asked.push_back(w);
  }
  const auto answers = workers_.AskIncarnations(asked);
  proposed_.clear();
  uint64_t hash = HashText(0xcbf29ce484222325u, StrCat("group ", options_.group_key));
  std::vector<std::string> tasks;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!answers[i].has_value()) continue;
    proposed_.push_back(asked[i]);
    tasks.push_back(workers_.task(asked[i]));
    hash = HashText(hash, StrCat(tasks.back(), " ", *answers[i], "\n"));
  }
  const bool takes_part = std::binary_search(proposed_.begin(), proposed_.end(), options_.worker);
  too_few_members_ = takes_part && static_cast<int>(tasks.size()) < min_workers();
  if (too_few_members_ || !takes_part) {
    return Unavailable(tasks.size(), " of ", workers_.size(), " workers take part, and it takes ",
                       min_workers(), " to train; missing: ", workers_.Missing(proposed_));
  }
  // The key is even and not negative; the control group uses the key + 1.
  proposed_key_ = static_cast<int32_t>((hash >> 33) & 0x7ffffffe);
  return tasks;
}

// Returns the Member that this worker sends to the others. `has_values`: whether its variables have
// values.
StatusOr<ElasticGroup::Member> ElasticGroup::OwnMember(Session& session, bool has_values) {
  Member own{.worker = options_.worker, .started = started_, .data_ended = data_ended_};
  if (!has_values || values_mixed_) return own;
  ASSIGN_OR_RETURN(const auto values,
                   session.Run({program_.GlobalStep().Read(), *update_, *batches_}));
  const int64_t step = values[0].scalar<int64_t>(), begun = values[1].scalar<int64_t>();
  if (begun > step) return own;
  own.step = step;
  own.batches = values[2].scalar<int64_t>();
  return own;
}

bool ElasticGroup::HasValues(Session& session) {
  const auto own = OwnMember(session, true);
  return own.ok() && own->step >= 0;
}

StatusOr<std::vector<ElasticGroup::Member>> ElasticGroup::Gather(Session& session,
                                                                 const RunOptions& options,
                                                                 Member own) {
  const Tensor row = Tensor::Of<int64_t>(
      {1, kRowValues},
      {own.worker, own.step, own.batches, own.started ? 1 : 0, own.data_ended ? 1 : 0});
  ASSIGN_OR_RETURN(const auto fetched, session.Run({{own_member_, row}}, {gathered_}, {}, options));
  const auto values = fetched[0].flat<int64_t>();
  std::vector<Member> members;
  for (size_t i = 0; i + kRowValues <= values.size(); i += kRowValues) {
    members.push_back({.worker = static_cast<int>(values[i]),
                       .step = values[i + 1],
                       .batches = values[i + 2],
                       .started = values[i + 3] != 0,
                       .data_ended = values[i + 4] != 0});
  }
  return members;
}

// Returns Internal if `members` are not the proposed workers.
Status ElasticGroup::CheckGathered(const std::vector<Member>& members) const {
  std::vector<int> workers;
  for (const Member& member : members) workers.push_back(member.worker);
  std::sort(workers.begin(), workers.end());
  if (workers == proposed_) return OkStatus();
  return Internal("elastic group: workers ", absl::StrJoin(workers, ", "), " have met, but ",
                  absl::StrJoin(proposed_, ", "), " were to meet");
}

// After a group has not formed in time: leaves the proposed workers that were not in this worker's
// last group out of the next proposals, for pause_seconds, because they probably did not join.
void ElasticGroup::PauseNewMembers() {
  if (!started_) return;
  const int64_t until_ns = options_.env->NowNanos() + Nanos(options_.pause_seconds);
  for (const int w : proposed_) {
    if (!std::binary_search(members_.begin(), members_.end(), w)) paused_until_ns_[w] = until_ns;
  }
}

StatusOr<TrainingGroup::Plan> ElasticGroup::Join(Session& session, const RunOptions& options,
                                                 bool has_values) {
  joined_ = regroup_ = false;
  ASSIGN_OR_RETURN(const Member own, OwnMember(session, has_values));
  RETURN_IF_ERROR(session.Execute(
      set_group_, {{new_size_, Tensor::Scalar(static_cast<int32_t>(proposed_.size()))},
                   {new_key_, Tensor::Scalar(proposed_key_)}}));
  const auto members = Gather(session, options, own);
  if (absl::IsDeadlineExceeded(members.status())) PauseNewMembers();
  if (!members.ok()) return TryAgain(members.status());
  joined_ = true;
  RETURN_IF_ERROR(CheckGathered(*members));
  const bool any_started = std::any_of(members->begin(), members->end(),
                                       [](const Member& member) { return member.started; });
  if (!any_started && proposed_.size() < options_.workers.size()) {
    return Unavailable("a training starts with all workers; missing: ",
                       workers_.Missing(proposed_));
  }
  const Plan plan = MakePlan(*members);
  // If the worker whose data have ended is lost now, the training still ends.
  data_ended_ |= ends_;
  watch_.Stop();
  if (size() > 1) {
    const int next = members_[(rank_ + 1) % size()];
    watch_.Start(next, [this, &session] { EndCollectives(session); });
  }
  return plan;
}

// Chooses the member whose values all members go on with: the one with the highest step; if there
// are several, the one with the lowest index. All members choose the same one, because each has
// received the state of all.
TrainingGroup::Plan ElasticGroup::MakePlan(const std::vector<Member>& members) {
  members_ = proposed_;
  joined_key_ = proposed_key_;
  rank_ = static_cast<int>(std::lower_bound(members_.begin(), members_.end(), options_.worker) -
                           members_.begin());
  Plan plan;
  Member source{.worker = members_[0]}, own;
  ends_ = false;
  for (const Member& member : members) {
    plan.started |= member.started;
    ends_ |= member.data_ended;
    if (member.step > source.step ||
        (member.step == source.step && member.worker < source.worker)) {
      source = member;
    }
    if (member.worker == options_.worker) own = member;
  }
  plan.restore = source.step < 0;
  // The members take the steps after the checkpoint again, and reach the end of the data again.
  if (plan.restore) ends_ = data_ended_ = false;
  // A worker that took the same step in another group has different values, and a different number
  // of batches.
  const auto has_values = [&](const Member& member) {
    return !plan.restore && member.step == source.step && member.batches == source.batches;
  };
  if (std::all_of(members.begin(), members.end(), has_values)) {
    role_ = Role::kNone;
  } else if (source.worker == options_.worker) {
    role_ = Role::kSend;
  } else {
    role_ = has_values(own) ? Role::kDrop : Role::kReceive;
  }
  plan.receives = role_ == Role::kReceive;
  values_mixed_ |= plan.restore;  // a restore that fails leaves values of two steps
  return plan;
}

Status ElasticGroup::ShareValues(Session& session, const RunOptions& options) {
  values_mixed_ = role_ == Role::kReceive;  // until all values have arrived
  if (role_ != Role::kNone) {
    const Output op = role_ == Role::kSend ? send_ : role_ == Role::kDrop ? drop_ : receive_;
    // A member whose all-gather has timed out ends the control group, and does not join the main
    // group. Without barrier_, which then fails, the others would wait for that member until the
    // step's timeout.
    const Status shared = RunWithMembers(session, {op, barrier_}, options);
    if (!shared.ok()) return TryAgain(shared);
  }
  values_mixed_ = false;
  started_ = true;
  RETURN_IF_ERROR(session.Execute(end_update_));
  ASSIGN_OR_RETURN(const auto values, session.Run({program_.GlobalStep().Read(), *batches_}));
  joined_at_step_ = values[0].scalar<int64_t>();
  batches_before_ = values[1].scalar<int64_t>();
  for (const int w : members_) paused_until_ns_.erase(w);
  return OkStatus();
}

void ElasticGroup::Leave(Session& session) {
  // If all members have agreed to regroup, no member waits for this worker. If the session has not
  // joined, the collectives below would make it join.
  if (regroup_ || !std::exchange(joined_, false)) return;
  EndCollectives(session);
}

// Ends this worker's collectives, and the group. Ignores the error: a MemberWatch calls again while
// this worker waits.
void ElasticGroup::EndCollectives(Session& session) {
  session.Run({}, {}, {leave_}, {.timeout_ms = Millis(kLeaveSeconds)}).status().IgnoreError();
}

std::string ElasticGroup::Describe() const {
  std::string text = StrCat("trains with ", size(), " of ", workers_.size(),
                            " workers; chief: ", workers_.task(members_[0]));
  const std::string missing = workers_.Missing(members_);
  if (!missing.empty()) StrAppend(&text, "; without ", missing);
  return text;
}

Status ElasticGroup::SessionReady(Session& session, int64_t global_step) {
  session_ = &session;
  regroup_requested_ = false;
  lost_worker_found_ = false;
  if (!is_chief()) return OkStatus();
  std::map<int, int64_t> lost = paused_until_ns_;  // has no members (ShareValues)
  for (int w = 0; w < workers_.size(); ++w) {
    if (!std::binary_search(members_.begin(), members_.end(), w)) lost.try_emplace(w, 0);
  }
  if (lost.empty()) return OkStatus();
  asking_ = std::make_unique<Periodic>(
      "ask lost workers", options_.rejoin_seconds,
      [this, lost = std::move(lost)] { AskForLostWorkers(lost); }, *options_.env,
      *options_.scheduler);
  return OkStatus();
}

void ElasticGroup::SessionEnds() {
  watch_.Stop();
  session_ = nullptr;
  asking_ = nullptr;
}

Status ElasticGroup::BeforeStep(int64_t global_step) {
  watch_.BeginWait();
  if (!lost_worker_found_ || regroup_requested_) return OkStatus();
  regroup_requested_ = true;
  return session_->Execute(set_regroup_flag_);
}

void ElasticGroup::Fetched(std::vector<Tensor> values) {
  regroup_ = values[0].scalar<int32_t>() > 0;
}

Status ElasticGroup::AfterStep(const StepResult& result, bool* stop) {
  watch_.EndWait();
  if (regroup_) {
    // The members may have paused workers at different times. Clearing the pauses makes all members
    // propose the same workers.
    paused_until_ns_.clear();
    return Aborted("lost workers are back; forming a group with them");
  }
  return OkStatus();
}

Status ElasticGroup::StepFailed(const Status& why) {
  watch_.EndWait();
  return Explain(why);
}

// Returns Aborted if a step has failed because a member is gone, else `why`.
Status ElasticGroup::Explain(const Status& why) const {
  const int gone = watch_.gone();
  if (!why.ok() && gone >= 0) {
    return Aborted("the client of ", workers_.task(gone), " is gone, although its task answers");
  }
  // The others treat a member that has closed its session as lost, for whatever reason it closed
  // it.
  const bool left = absl::IsOutOfRange(why) && absl::StrContains(why.message(), " has left group");
  return left ? Status(StatusCode::kAborted, why.message()) : why;
}

// Runs collectives in which all members take part.
Status ElasticGroup::RunWithMembers(Session& session, const Outputs& targets,
                                    const RunOptions& options) {
  watch_.BeginWait();
  const std::vector<TensorRef> names(targets.begin(), targets.end());
  const Status ran = session.Run({}, {}, names, options).status();
  watch_.EndWait();
  return Explain(ran);
}

Status ElasticGroup::AwaitLastSave(Session& session, const RunOptions& options) {
  const Status saved = RunWithMembers(session, {saved_}, options);
  if (!absl::IsDeadlineExceeded(saved)) return saved;
  return Annotate(saved, is_chief() ? "waiting for the other members after the last save"
                                    : StrCat("waiting until ", workers_.task(members_[0]),
                                             " (the chief) has saved the last checkpoint"));
}

// Sets lost_worker_found_ if one of the lost workers answers and has a client. `lost`: by worker,
// the time before which it is not asked. SessionEnds waits for a call under way, for a few
// ask_seconds at most: every operation of a short session has this timeout.
void ElasticGroup::AskForLostWorkers(const std::map<int, int64_t>& lost) {
  if (lost_worker_found_) return;
  std::vector<int> asked;
  for (const auto& [worker, paused_until_ns] : lost) {
    if (paused_until_ns <= options_.env->NowNanos()) asked.push_back(worker);
  }
  for (const auto& answer : workers_.AskIncarnations(asked)) {
    if (answer.has_value()) lost_worker_found_ = true;
  }
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
#include "client/elastic_group.h"

#include <algorithm>
#include <set>
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

// The time that Leave may take, and the number of values in a row of the all-gather.
constexpr double kLeaveSeconds = 0.1;
constexpr int64_t kRowValues = 5;

// FNV-1a, because all workers must compute the same hash.
uint64_t HashText(uint64_t hash, const std::string& text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Output Fed(Program& program, DType dtype, const PartialShape& shape, const char* name) {
  return CallIn(program, "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, name);
}

// How often a worker looks after the next member while it waits for the others.
constexpr double kWatchSeconds = 1;

// Turns an error that ended the forming of a group into one after which the loop tries again.
Status TryAgain(const Status& status) {
  const bool again = IsTaskLoss(status) || absl::IsDeadlineExceeded(status) ||
                     absl::IsOutOfRange(status) || absl::IsAlreadyExists(status);
  return again ? Unavailable("the group has not formed: ", status.message()) : status;
}

}  // namespace

ElasticGroup::ElasticGroup(Program& program, Options options)
    : program_(program),
      options_(std::move(options)),
      presence_({.training = PresenceName(),
                 .task = options_.worker >= 0 && options_.worker < std::ssize(options_.workers)
                             ? options_.workers[options_.worker]
                             : "",
                 .lifetime_seconds = options_.present_seconds,
                 .new_session =
                     [this] { return NewShortSession(options_.workers[options_.worker]); },
                 .announce_seconds = 4 * options_.ask_seconds,
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
  for (const double seconds :
       {options_.ask_seconds, options_.form_seconds, options_.present_seconds}) {
    if (!(seconds > 0)) {
      program_.Fail(InvalidArgument("elastic group: ask_seconds=", options_.ask_seconds,
                                    ", form_seconds=", options_.form_seconds,
                                    ", present_seconds=", options_.present_seconds,
                                    ": all must be more than 0"));
    }
  }
}

Output ElasticGroup::Reduce(Output value, Output key, int instance) {
  const Output instance_key = Constant(program_, Tensor::Scalar<int32_t>(instance));
  return Call("CollectiveReduceV2", {value, group_size_, key, instance_key, Outputs()},
              {{"merge_op", "Add"}, {"final_op", "Id"}});
}

void ElasticGroup::AddNodes() {
  const std::string task = options_.workers[options_.worker];
  const auto device = program_.DeviceFunctionScope(OnDevice(task));
  const Variable global_step = program_.GlobalStep();
  const auto names = program_.NameScope("elastic");
  // Counts and keys live in host memory.
  auto host = std::make_optional(program_.DeviceScope(StrCat(task, "/device:CPU:0")));
  const VariableOptions local{.dtype = DType::kInt32, .local = true};
  const VariableOptions shared{.dtype = DType::kInt64, .trainable = false};
  size_.emplace(program_, "size", Shape(), Zeros(), local);
  key_.emplace(program_, "key", Shape(), Zeros(), local);
  wanted_.emplace(program_, "wanted", Shape(), Zeros(), local);
  batches_.emplace(program_, "batches", Shape(), Zeros(), shared);
  update_.emplace(program_, "update", Shape(), Zeros(), shared);
  group_size_ = size_->Read();
  group_key_ = key_->Read();
  // A second group of the same workers, whose ranks are CPUs.
  control_key_ = group_key_ + 1;
  new_size_ = Fed(program_, DType::kInt32, PartialShape::Scalar(), "new_size");
  new_key_ = Fed(program_, DType::kInt32, PartialShape::Scalar(), "new_key");
  set_group_ = program_.Group({size_->Assign(new_size_), key_->Assign(new_key_)}, "set_group");
  want_ = wanted_->Assign(Constant(program_, Tensor::Scalar<int32_t>(1)));
  own_member_ = Fed(program_, DType::kInt64, {1, kRowValues}, "own_member");
  gathered_ = Call("CollectiveGatherV2",
                   {own_member_, group_size_, control_key_,
                    Constant(program_, Tensor::Scalar<int32_t>(1)), Outputs()},
                   {{"timeout_seconds", static_cast<float>(options_.form_seconds)}});
  wanted_sum_ = Reduce(wanted_->Read(), control_key_, 2);
  const Output leave_control =
      Reduce(Constant(program_, Tensor::Scalar<int32_t>(0)), control_key_, 3);
  meet_ = Reduce(Constant(program_, Tensor::Scalar<int32_t>(0)), control_key_, 4);
  saved_ = Reduce(Constant(program_, Tensor::Scalar<int32_t>(0)), control_key_, 5);
  end_update_ = update_->Assign(global_step.Read());
  host.reset();
  // The main group's ranks are the devices that compute.
  const Output leave_main = Reduce(Constant(program_, Tensor::Scalar<float>(0)), group_key_, 0);
  leave_ = program_.Group({leave_control, leave_main}, "leave");
}

Output ElasticGroup::BeginUpdate(Outputs averages) {
  if (!program_.status().ok()) return {&program_, -1, 0};
  averages.push_back(wanted_sum_);
  const auto names = program_.NameScope("elastic");
  const auto after = program_.ControlDependencies(averages);
  const Output begun = update_->Assign(program_.GlobalStep().Read() + 1);
  // If the step is cancelled in between, the update has begun, so these values are not used.
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
  return static_cast<int>(options_.workers.size()) / 2 + 1;
}

// Returns the names of all workers that are not in `workers`.
std::string ElasticGroup::Missing(const std::vector<int>& workers) const {
  std::vector<std::string> missing;
  for (int w = 0; w < static_cast<int>(options_.workers.size()); ++w) {
    if (!std::binary_search(workers.begin(), workers.end(), w)) {
      missing.push_back(options_.workers[w]);
    }
  }
  return absl::StrJoin(missing, ", ");
}

std::string ElasticGroup::PresenceName() const {
  return StrCat("elastic_group_", options_.group_key);
}

StatusOr<std::unique_ptr<SessionInterface>> ElasticGroup::NewSession(
    const SessionOptions& options) const {
  return options_.new_session ? options_.new_session(options)
                              : NewRemoteSession(options_.target, options, *options_.env);
}

// Makes a session with `task`, besides this worker's, of which no operation takes longer than
// ask_seconds.
StatusOr<std::unique_ptr<SessionInterface>> ElasticGroup::NewShortSession(
    const std::string& task) const {
  return NewSession(
      {.operation_timeout_ms = Millis(options_.ask_seconds), .device_filters = {task}});
}

// Returns the incarnation of `task`. An error if it does not answer in time, or if its client is
// not present.
StatusOr<uint64_t> ElasticGroup::Ask(const std::string& task) const {
  ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(task));
  ASSIGN_OR_RETURN(auto session, NewShortSession(task));
  ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, session->ListDevices());
  const auto device = std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& each) {
    return name.Matches(each.name);
  });
  if (device == devices.end()) return NotFound(task, " has no devices");
  ASSIGN_OR_RETURN(const bool present, Presence::IsPresent(std::move(session), PresenceName(), task,
                                                           options_.present_seconds));
  if (!present) return NotFound("the client of ", task, " is gone");
  return device->incarnation;
}

// Asks all of `workers` at the same time. Returns the incarnations of those that answer and whose
// client is present.
std::vector<std::optional<uint64_t>> ElasticGroup::AskAll(const std::vector<int>& workers) const {
  std::vector<std::optional<uint64_t>> answers(workers.size());
  std::vector<std::unique_ptr<Thread>> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.push_back(
        options_.scheduler->StartThread("ask a worker", [this, i, &workers, &answers] {
          const auto incarnation = Ask(options_.workers[workers[i]]);
          if (incarnation.ok()) answers[i] = *incarnation;
        }));
  }
  threads.clear();  // waits for them
  return answers;
}

StatusOr<std::vector<std::string>> ElasticGroup::FindMembers() {
  const Status announced = presence_.Announce();
  if (!announced.ok()) return TryAgain(announced);
  std::vector<int> asked;
  const int64_t now_ns = options_.env->NowNanos();
  for (int w = 0; w < static_cast<int>(options_.workers.size()); ++w) {
    const auto paused = paused_until_ns_.find(w);
    if (paused == paused_until_ns_.end() || paused->second <= now_ns) asked.push_back(w);
  }
  const auto answers = AskAll(asked);
  proposed_.clear();
  uint64_t hash = HashText(0xcbf29ce484222325u, StrCat("group ", options_.group_key));
  std::vector<std::string> tasks;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!answers[i].has_value()) continue;
    proposed_.push_back(asked[i]);
    tasks.push_back(options_.workers[asked[i]]);
    hash = HashText(hash, StrCat(tasks.back(), " ", *answers[i], "\n"));
  }
  if (static_cast<int>(tasks.size()) < min_workers() ||
      !std::binary_search(proposed_.begin(), proposed_.end(), options_.worker)) {
    return Unavailable(tasks.size(), " of ", options_.workers.size(),
                       " workers take part, and it takes ", min_workers(),
                       " to train; missing: ", Missing(proposed_));
  }
  // Even and positive: the control group has the next key.
  proposed_key_ = static_cast<int32_t>((hash >> 33) & 0x7ffffffe);
  return tasks;
}

// Returns what this worker tells the others. `has_values`: whether its variables have values.
StatusOr<ElasticGroup::Member> ElasticGroup::Own(Session& session, bool has_values) {
  Member own{.worker = options_.worker, .started = started_, .data_ended = data_ended_};
  if (!has_values || spoiled_) return own;
  ASSIGN_OR_RETURN(const auto values,
                   session.Run({program_.GlobalStep().Read(), *update_, *batches_}));
  const int64_t step = values[0].scalar<int64_t>(), begun = values[1].scalar<int64_t>();
  if (begun > step) return own;
  own.step = step;
  own.batches = values[2].scalar<int64_t>();
  return own;
}

bool ElasticGroup::HasValues(Session& session) {
  const auto own = Own(session, true);
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

// Internal if the group is not the one that was proposed.
Status ElasticGroup::CheckGathered(const std::vector<Member>& members) const {
  std::vector<int> workers;
  for (const Member& member : members) workers.push_back(member.worker);
  std::sort(workers.begin(), workers.end());
  if (workers == proposed_) return OkStatus();
  return Internal("elastic group: workers ", absl::StrJoin(workers, ", "), " have met, but ",
                  absl::StrJoin(proposed_, ", "), " were to meet");
}

// Leaves out those that this worker has not trained with, for a while: they have not come.
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
  const auto size = static_cast<int32_t>(proposed_.size());
  ASSIGN_OR_RETURN(const Member own, Own(session, has_values));
  RETURN_IF_ERROR(session.Execute(
      set_group_, {{new_size_, Tensor::Scalar(size)}, {new_key_, Tensor::Scalar(proposed_key_)}}));
  const auto members = Gather(session, options, own);
  if (absl::IsDeadlineExceeded(members.status())) PauseNewMembers();
  if (!members.ok()) return TryAgain(members.status());
  joined_ = true;
  RETURN_IF_ERROR(CheckGathered(*members));
  gone_ = -1;
  const bool any_started = std::any_of(members->begin(), members->end(),
                                       [](const Member& member) { return member.started; });
  if (!any_started && proposed_.size() < options_.workers.size()) {
    return Unavailable("a training starts with all workers; missing: ", Missing(proposed_));
  }
  const Plan plan = MakePlan(*members);
  // If the worker whose data have ended is lost now, the training still ends.
  data_ended_ |= ends_;
  watching_ = std::make_unique<Periodic>(
      "watch a member", std::min(kWatchSeconds, options_.present_seconds),
      [this, &session] { WatchNextMember(session); }, *options_.env, *options_.scheduler);
  return plan;
}

// Plans with whose values the members go on. All members choose the same, because each has the
// states of all: the values of the member with the highest step; of several, of the lowest worker.
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
  // A worker that took the step in another group has other values, and has counted other batches.
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
  spoiled_ |= plan.restore;  // until ShareValues: a restore that fails leaves values of two steps
  return plan;
}

Status ElasticGroup::ShareValues(Session& session, const RunOptions& options) {
  spoiled_ = role_ == Role::kReceive;  // until all values have arrived
  if (role_ != Role::kNone) {
    const Output op = role_ == Role::kSend ? send_ : role_ == Role::kDrop ? drop_ : receive_;
    // A member for which the all-gather has timed out ends the control group, and does not come to
    // the main group. Without meet_ the others would wait for it until that is given up.
    const Status shared = RunWithMembers(session, {op, meet_}, options);
    if (!shared.ok()) return TryAgain(shared);
  }
  spoiled_ = false;
  started_ = true;
  RETURN_IF_ERROR(session.Execute(end_update_));
  ASSIGN_OR_RETURN(const auto values, session.Run({program_.GlobalStep().Read(), *batches_}));
  joined_at_step_ = values[0].scalar<int64_t>();
  batches_before_ = values[1].scalar<int64_t>();
  for (const int w : members_) paused_until_ns_.erase(w);
  return OkStatus();
}

void ElasticGroup::Leave(Session& session) {
  // After a regroup that was agreed upon nobody waits for this worker. Before the session has
  // joined, the collectives below would make it join.
  if (regroup_ || !std::exchange(joined_, false)) return;
  session.Run({}, {}, {leave_}, {.timeout_ms = Millis(kLeaveSeconds)}).status().IgnoreError();
}

std::string ElasticGroup::Describe() const {
  std::string text = StrCat("trains with ", size(), " of ", options_.workers.size(),
                            " workers; chief: ", options_.workers[members_[0]]);
  const std::string missing = Missing(members_);
  if (!missing.empty()) StrAppend(&text, "; without ", missing);
  return text;
}

Status ElasticGroup::SessionReady(Session& session, int64_t global_step) {
  session_ = &session;
  want_told_ = false;
  found_lost_ = false;
  asked_ns_ = options_.env->NowNanos();
  return OkStatus();
}

void ElasticGroup::SessionEnds() {
  watching_ = nullptr;
  waits_since_ns_ = 0;
  session_ = nullptr;
  asking_ = nullptr;
}

void ElasticGroup::Retire() { presence_.Withdraw(); }

Status ElasticGroup::BeforeStep(int64_t global_step) {
  waits_since_ns_ = options_.env->NowNanos();
  if (!found_lost_ || want_told_) return OkStatus();
  want_told_ = true;
  return session_->Execute(want_);
}

void ElasticGroup::Fetched(std::vector<Tensor> values) {
  regroup_ = values[0].scalar<int32_t>() > 0;
}

Status ElasticGroup::AfterStep(const StepResult& result, bool* stop) {
  waits_since_ns_ = 0;
  if (regroup_) {
    // All members propose the same workers, whenever each of them has begun to leave some out.
    paused_until_ns_.clear();
    return Aborted("lost workers are back; forming a group with them");
  }
  AskForLostWorkers();
  return OkStatus();
}

Status ElasticGroup::StepFailed(const Status& why) {
  waits_since_ns_ = 0;
  return Explain(why);
}

// Returns Aborted if a step has failed because a member is gone, else `why`.
Status ElasticGroup::Explain(const Status& why) const {
  const int gone = gone_;
  if (!why.ok() && gone >= 0) {
    return Aborted("the client of ", options_.workers[gone], " is gone, although its task answers");
  }
  // A member that has closed its session is lost to the others, whatever its reason was.
  const bool left = absl::IsOutOfRange(why) && absl::StrContains(why.message(), " has left group");
  return left ? Status(StatusCode::kAborted, why.message()) : why;
}

// Runs collectives in which all members take part.
Status ElasticGroup::RunWithMembers(Session& session, const Outputs& targets,
                                    const RunOptions& options) {
  waits_since_ns_ = options_.env->NowNanos();
  const std::vector<TensorRef> names(targets.begin(), targets.end());
  const Status ran = session.Run({}, {}, names, options).status();
  waits_since_ns_ = 0;
  return Explain(ran);
}

Status ElasticGroup::AwaitLastSave(Session& session, const RunOptions& options) {
  return RunWithMembers(session, {saved_}, options);
}

// Ends a wait for the other members if the client of the next one is gone although its task
// answers: nothing else would end it. Each member watches one, so the lost ones are noticed as long
// as one member is there.
void ElasticGroup::WatchNextMember(Session& session) {
  const int64_t since_ns = waits_since_ns_;
  if (since_ns == 0 || gone_ >= 0 || size() < 2 ||
      options_.env->NowNanos() - since_ns < Nanos(options_.present_seconds)) {
    return;
  }
  const int next = members_[(rank_ + 1) % size()];
  const std::string& task = options_.workers[next];
  auto asking = NewShortSession(task);
  if (!asking.ok()) return;
  const auto present = Presence::IsPresent(*std::move(asking), PresenceName(), task,
                                           options_.present_seconds);
  // A task that does not answer is noticed by the connections to it.
  if (!present.ok() || *present) return;
  gone_ = next;
  session.Run({}, {}, {leave_}, {.timeout_ms = Millis(kLeaveSeconds)}).status().IgnoreError();
}

// Starts to ask for the workers that are not in the group, if that is due.
void ElasticGroup::AskForLostWorkers() {
  const int64_t now_ns = options_.env->NowNanos();
  if (!is_chief() || members_.size() == options_.workers.size() || found_lost_ ||
      now_ns - asked_ns_ < Nanos(options_.rejoin_seconds)) {
    return;
  }
  asked_ns_ = now_ns;
  std::vector<int> lost;
  for (int w = 0; w < static_cast<int>(options_.workers.size()); ++w) {
    const auto paused = paused_until_ns_.find(w);
    const bool is_paused = paused != paused_until_ns_.end() && paused->second > now_ns;
    if (!is_paused && !std::binary_search(members_.begin(), members_.end(), w)) lost.push_back(w);
  }
  // The destructor of an earlier thread waits for its end.
  asking_ = options_.scheduler->StartThread("ask lost workers", [this, lost] {
    for (const auto& answer : AskAll(lost)) {
      if (answer.has_value()) found_lost_ = true;
    }
  });
}

}  // namespace penstock::client

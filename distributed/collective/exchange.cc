// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/exchange.h"

#include <algorithm>
#include <utility>

namespace penstock::collective {
namespace {

constexpr double kSecondsMax = 365 * 24 * 3600;

// Returns the error that ends this task's calls when `task` has left the group because of `why`.
// Codes such as Cancelled and DeadlineExceeded become Aborted: they describe the other task's
// step, not this task's.
Status DepartureError(const Status& why, const TaskName& task, const GroupKey& group) {
  const std::string text =
      StrCat(task.ToString(), " has left ", group.ToString(), ": ", why.message());
  switch (why.code()) {
    case StatusCode::kOutOfRange:
    case StatusCode::kUnavailable:
    case StatusCode::kInvalidArgument:
    case StatusCode::kResourceExhausted:
    case StatusCode::kUnimplemented:
      return Status(why.code(), text);
    default:
      return Aborted(text);
  }
}

}  // namespace

Exchange::Exchange(Options options)
    : options_(std::move(options)),
      links_(options_.self, kStepsOfCollectives, *this, options_.unclaimed_bytes_max),
      table_(options_.self, options_.groups_max, options_.unclaimed_bytes_max) {}

Exchange::~Exchange() = default;

void Exchange::Collect(const std::string& session, int64_t step_id, CollectiveCall call,
                       Collectives::Collected collected) {
  const GroupKey key{call.group_key, call.group_size};
  const StatusOr<DeviceName> device = DeviceName::Parse(call.device);
  if (!device.ok()) return std::move(collected)(device.status());
  auto pending =
      std::make_shared<PendingCall>(call.cancellation, *options_.timer, std::move(collected));
  const bool watched = pending->Watch([this, weak = std::weak_ptr(pending)](const Status& why) {
    if (const auto call = weak.lock()) FailCall(call, why);
  });
  if (!watched) return pending->End(call.cancellation->status());
  if (call.timeout_seconds > 0) ArmTimer(key, pending, call.timeout_seconds, call.instance_key);
  if (BeginFormed(key, session, step_id, *device, call, pending)) return;
  const auto tasks = options_.tasks_of(session);
  if (!tasks.ok()) return pending->End(tasks.status());
  Waiting waiting{.pending = std::move(pending),
                  .session = session,
                  .step_id = step_id,
                  .device = *device,
                  .call = std::move(call)};
  for (const TaskId& task : *tasks) {
    const StatusOr<TaskName> name = TaskName::Parse(task.name);
    if (name.ok() && *name != options_.self) waiting.tasks.insert(*name);
  }
  Wait(key, std::move(waiting), *tasks);
}

void Exchange::ArmTimer(const GroupKey& key, const std::shared_ptr<PendingCall>& pending,
                        double seconds, int64_t instance) {
  seconds = std::min(seconds, kSecondsMax);
  pending->Arm(options_.env->NowNanos() + static_cast<int64_t>(seconds * 1e9),
               [this, key, seconds, instance, weak = std::weak_ptr(pending)] {
                 const auto call = weak.lock();
                 if (call == nullptr) return;
                 call->Expired();
                 const auto formed = call->group().lock();
                 FailCall(call, formed == nullptr
                                    ? DeadlineExceeded(key.ToString(), " has not formed within ",
                                                       seconds, " s; ", DescribeJoined(key))
                                    : DeadlineExceeded("instance ", instance, " of ",
                                                       key.ToString(), " has not ended within ",
                                                       seconds, " s; ", formed->Missing(instance)));
               });
}

// If the call's group has formed, begins the call there or ends it with an error, and returns true.
// Returns false if the call has to wait until its group forms.
bool Exchange::BeginFormed(const GroupKey& key, const std::string& session, int64_t step_id,
                           const DeviceName& device, CollectiveCall& call,
                           const std::shared_ptr<PendingCall>& pending) {
  std::shared_ptr<FormedGroup> formed;
  Status failed;
  int rank = -1;
  {
    MutexLock lock(mu_);
    const Group* const group = table_.Find(key);
    if (group == nullptr) return false;
    const auto found = group->failed.find(session);
    if (found != group->failed.end()) failed = found->second;
    formed = group->formed;
  }
  if (!failed.ok()) {
    pending->End(failed);
    return true;
  }
  if (formed == nullptr) return false;
  rank = formed->RankOf(device);
  if (rank < 0 || formed->ranks()[rank].session != session) {
    if (formed->running()) {
      pending->End(AlreadyExists(key.ToString(), " has formed of other ranks than ", call.device,
                                 " of session ", session, ", and they are using it"));
      return true;
    }
    const Status begun_anew = Aborted("session ", session, " uses the group's key");
    EndFormed(*formed, begun_anew);
    return false;
  }
  pending->set_group(formed);
  BeginInGroup(formed, rank, step_id, std::move(call), pending);
  return true;
}

void Exchange::BeginInGroup(const std::shared_ptr<FormedGroup>& formed, int rank, int64_t step_id,
                            CollectiveCall call, const std::shared_ptr<PendingCall>& pending) {
  formed->Begin(rank, step_id, std::move(call),
                [pending](StatusOr<Tensor> result) { pending->End(std::move(result)); });
  // The call was cancelled before it had a group. Ends the group, so that the other ranks do not
  // wait for this rank.
  if (pending->failed()) {
    const Status why = Cancelled("the step was cancelled");
    EndFormed(*formed, why);
  }
}

void Exchange::Wait(const GroupKey& key, Waiting waiting, const std::vector<TaskId>& tasks) {
  const auto pending = waiting.pending;
  const double asked = waiting.call.timeout_seconds;
  const int64_t instance = waiting.call.instance_key;
  const std::string session = waiting.session;
  const DeviceName device = waiting.device;
  bool formed = false;
  Status full;
  {
    MutexLock lock(mu_);
    if (pending->failed()) return;
    full = table_.CheckRoomFor(key);
    if (full.ok()) {
      Group& group = table_.At(key);
      // Another call of this rank may have made the group form meanwhile.
      formed = group.formed != nullptr || group.failed.contains(session);
      if (!formed) group.waiting.push_back(std::move(waiting));
    }
  }
  if (!full.ok()) return pending->End(full);
  if (formed) {
    if (BeginFormed(key, session, waiting.step_id, device, waiting.call, pending)) return;
    return Wait(key, std::move(waiting), tasks);
  }
  if (asked <= 0) ArmTimer(key, pending, kMaxWaitSeconds, instance);
  // If a task is lost, the call fails; all tasks that can be reached will receive the Join.
  for (const TaskId& task : tasks) links_.Connect(task);
  GroupActions actions;
  {
    MutexLock lock(mu_);
    Group& group = table_.At(key);
    const auto same = std::find_if(group.waiting.begin(), group.waiting.end(),
                                   [&](const Waiting& w) { return w.pending == pending; });
    if (same == group.waiting.end()) return;  // the call has failed, or its group has formed
    JoinedRank& joined = group.joined[device];
    if (!joined.own || joined.rank.session != session) {
      joined = {.rank = {.device = device,
                         .task = options_.self,
                         .session = session,
                         .nonce = options_.env->RandomU64()},
                .own = true};
      const Join join{.group = key,
                      .device = device.ToString(),
                      .session = session,
                      .nonce = joined.rank.nonce};
      actions.Send({same->tasks.begin(), same->tasks.end()}, join);
    }
    TryForm(key, group, &actions);
  }
  RunActions(std::move(actions));
}

void Exchange::TryForm(const GroupKey& key, Group& group, GroupActions* actions) {
  std::vector<Rank> ranks = table_.TakeJoined(key, group);
  if (ranks.empty()) return;
  table_.RemoveEnded(options_.env->NowNanos());
  const auto formed = std::make_shared<FormedGroup>(FormedGroup::Options{
      .key = key,
      .ranks = std::move(ranks),
      .self = options_.self,
      .threads = options_.threads,
      .send =
          [this](const TaskName& task, const HashedKey& data, Tensor value,
                 TensorSink::HandedOver handed_over) {
            links_.Send(task, data, std::move(value), std::move(handed_over));
          },
      .fail = [this](FormedGroup& group, const Status& why) { EndFormed(group, why); },
      .unclaimed_bytes_max = options_.unclaimed_bytes_max});
  table_.AddFormed(group, formed);
  EarlyMessages::Group early = table_.early().Take(formed->id());
  if (!early.messages.empty() || !early.dropped.ok()) {
    actions->calls.push_back([this, formed, early = std::move(early)] {
      if (!early.dropped.ok()) {
        return EndFormed(*formed, Annotate(early.dropped, formed->key().ToString()));
      }
      for (const auto& e : early.messages) formed->Receive(e.from, e.address, e.value);
    });
  }
  for (Waiting& waiting : group.waiting) {
    waiting.pending->set_group(formed);
    const auto shared = std::make_shared<Waiting>(std::move(waiting));
    actions->calls.push_back([this, formed, shared] {
      // timeout_seconds limits the time until the end of the call, the default only the time until
      // the group has formed.
      if (shared->call.timeout_seconds <= 0) shared->pending->StopTimer();
      const auto pending = shared->pending;
      const int rank = formed->RankOf(shared->device);
      if (rank < 0 || formed->ranks()[rank].session != shared->session) {
        return pending->End(AlreadyExists(formed->key().ToString(), " has formed without ",
                                          shared->call.device, " of session ", shared->session));
      }
      BeginInGroup(formed, rank, shared->step_id, std::move(shared->call), pending);
    });
  }
  group.waiting.clear();
}

void Exchange::Received(const TaskName& from, const HashedKey& key, Tensor value) {
  if (key.key().tensor == kMessageKey) {
    const StatusOr<Message> message = ParseMessage(value);
    // Ignores a malformed message, which a task of another version may have sent. The group then
    // does not form, and its calls time out.
    if (!message.ok()) return;
    std::visit([&](const auto& m) { Handle(from, m); }, *message);
    return;
  }
  const Address address = Address::Of(key);
  std::shared_ptr<FormedGroup> formed;
  {
    MutexLock lock(mu_);
    formed = table_.FindFormed(address.group);
    if (formed == nullptr) {
      table_.early().Keep({from, address, std::move(value)}, options_.env->NowNanos());
    }
  }
  if (formed != nullptr) formed->Receive(from, address, std::move(value));
}

void Exchange::Handle(const TaskName& from, const Join& join) {
  const StatusOr<DeviceName> device = DeviceName::Parse(join.device);
  const StatusOr<TaskName> task = TaskName::OfDevice(join.device);
  if (!device.ok() || !task.ok() || *task != from) return;
  GroupActions actions;
  {
    MutexLock lock(mu_);
    table_.early().Expire(options_.env->NowNanos());
    if (table_.HasHandled(join.nonce)) return;  // a late repetition
    const Status full = table_.CheckRoomFor(join.group);
    Group* const group = full.ok() ? &table_.At(join.group) : nullptr;
    const auto formed = full.ok() ? group->formed : nullptr;
    if (formed != nullptr && formed->RankOf(*device) >= 0 && !formed->ended()) {
      // The device of `from` joins again although the group has formed here, so the group has ended
      // in that task.
      const Status why = DepartureError(Aborted("it has begun anew"), from, join.group);
      table_.AddLeaveMessages(*formed, why, &actions);
      table_.Retire(*formed, why);
      actions.calls.push_back([formed, why] { formed->End(why); });
    }
    Status refused = full;
    if (formed != nullptr && formed->RankOf(*device) < 0 && formed->running()) {
      refused = AlreadyExists("the group has formed already, without ", join.device);
    }
    if (!refused.ok()) {
      actions.Send({from}, Leave{.group = join.group, .nonces = {join.nonce}, .why = refused});
    } else {
      group->joined[*device] = {
          .rank = {.device = *device, .task = from, .session = join.session, .nonce = join.nonce}};
      TryForm(join.group, *group, &actions);
    }
  }
  RunActions(std::move(actions));
}

void Exchange::Handle(const TaskName& from, const Leave& leave) {
  std::shared_ptr<FormedGroup> formed;
  const Status why = DepartureError(leave.why, from, leave.group);
  const std::set<uint64_t> nonces(leave.nonces.begin(), leave.nonces.end());
  GroupActions actions;
  {
    MutexLock lock(mu_);
    table_.early().Expire(options_.env->NowNanos());
    table_.Revoke(leave.nonces);
    if (Group* const found = table_.Find(leave.group)) {
      Group& group = *found;
      std::set<DeviceName> refused;  // devices of this task that may not join
      for (auto it = group.joined.begin(); it != group.joined.end();) {
        const JoinedRank& joined = it->second;
        const bool gone = nonces.contains(joined.rank.nonce);
        if (gone && joined.own) refused.insert(it->first);
        it = gone && !joined.own ? group.joined.erase(it) : std::next(it);
      }
      table_.FailWaiting(
          leave.group, group, why, [&](const Waiting& w) { return refused.contains(w.device); },
          &actions);
    }
    const auto left_id = static_cast<uint32_t>(leave.formed);
    if (left_id != 0 && table_.FindFormed(left_id) == nullptr) {
      table_.early().Forget(left_id);
    }
    // Finds the group by its ranks, not by `leave.formed`: this task may have combined other Joins
    // into a group than the sender.
    for (const auto& [id, each] : table_.formed()) {
      const auto left = [&](const Rank& r) { return r.task == from && nonces.contains(r.nonce); };
      if (std::any_of(each->ranks().begin(), each->ranks().end(), left)) formed = each;
    }
    if (formed != nullptr) {
      // If the sender has formed another group, or none, other tasks may have formed this wrong
      // group, too, so they must hear that it ends.
      const bool astray = !formed->ended() && leave.formed != formed->id();
      if (astray) table_.AddLeaveMessages(*formed, why, &actions);
      table_.Retire(*formed, why);
    }
  }
  if (formed != nullptr) formed->NoteLeft(from, why, leave.completed);
  RunActions(std::move(actions));
}

void Exchange::Connected(const TaskName& task) {
  GroupActions actions;
  {
    MutexLock lock(mu_);
    table_.AddJoinMessages(task, &actions);
  }
  RunActions(std::move(actions));
}

void Exchange::Lost(const TaskName& task, const Status& why) {
  std::vector<std::shared_ptr<FormedGroup>> ended;
  GroupActions actions;
  {
    MutexLock lock(mu_);
    table_.ForgetRanksOf(task);
    table_.FailWaitingAnnotated(
        why, [&](const Waiting& w) { return w.tasks.contains(task); }, &actions);
    for (const auto& [id, formed] : table_.formed()) {
      if (formed->Has(task) && !formed->HasLeft(task)) ended.push_back(formed);
    }
    table_.early().ForgetGroupsOf(task);
  }
  for (const auto& formed : ended) EndFormed(*formed, Annotate(why, formed->key().ToString()));
  RunActions(std::move(actions));
}

void Exchange::FailCall(const std::shared_ptr<PendingCall>& pending, const Status& why) {
  pending->MarkFailed();
  GroupActions actions;
  {
    MutexLock lock(mu_);
    table_.FailWaiting(
        why, [&](const Waiting& w) { return w.pending == pending; }, &actions);
  }
  RunActions(std::move(actions));
  if (const auto formed = pending->group().lock()) EndFormed(*formed, why);
  pending->End(why);
}

void Exchange::EndSession(const std::string& session, const Status& why) {
  std::vector<std::shared_ptr<FormedGroup>> ended;
  GroupActions actions;
  {
    MutexLock lock(mu_);
    table_.FailWaiting(
        why, [&](const Waiting& w) { return w.session == session; }, &actions);
    table_.ForgetFailures(session);
    for (const auto& [id, formed] : table_.formed()) {
      const auto own = [&](const Rank& rank) {
        return rank.task == options_.self && rank.session == session;
      };
      const std::vector<Rank>& ranks = formed->ranks();
      if (std::any_of(ranks.begin(), ranks.end(), own)) ended.push_back(formed);
    }
  }
  RunActions(std::move(actions));
  for (const auto& formed : ended) {
    const Status left =
        formed->running() ? why : OutOfRange("it takes part in no further step: ", why.message());
    EndFormed(*formed, left);
  }
  MutexLock lock(mu_);
  table_.ForgetFailures(session);
  table_.ForgetUnused();
}

// Ends a group for the reason `why`, which arose in this task, and tells the other tasks.
void Exchange::EndFormed(FormedGroup& formed, const Status& why) {
  const auto keep = formed.shared_from_this();
  GroupActions actions;
  {
    MutexLock lock(mu_);
    if (!formed.ended()) {
      table_.Retire(formed, why);
      table_.AddLeaveMessages(formed, why, &actions);
    }
    actions.calls.push_back([keep, why] { keep->End(why); });
  }
  RunActions(std::move(actions));
  MutexLock lock(mu_);
  table_.RemoveEnded(options_.env->NowNanos());
}

void Exchange::RunActions(GroupActions actions) {
  for (const auto& [task, message, final_message] : actions.messages) {
    uint64_t number = 0;
    {
      MutexLock lock(mu_);
      number = next_message_++;
    }
    const HashedKey key = KeyBetween(options_.self, task, kMessageKey).In(1, number);
    links_.SendOrDrop(task, key, ToTensor(message),
                      final_message.has_value() ? ToTensor(*final_message) : Tensor());
  }
  for (const auto& call : actions.calls) call();
}

std::string Exchange::DescribeJoined(const GroupKey& key) {
  MutexLock lock(mu_);
  return table_.DescribeJoined(key);
}

}  // namespace penstock::collective

// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/replica_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "core/base/fault_point.h"
#include "core/op/private_attrs.h"
#include "core/op/state_replay.h"

namespace penstock {
namespace {

const FaultPoint kSmallBatch(FaultPoint::kMishap, "replica/small-push",
                             "a push takes one record only");
const FaultPoint kEarlyAnswer(FaultPoint::kBug, "replica/answer-before-follower",
                              "a step is acknowledged before the follower has it");
const FaultPoint kHalfStep(FaultPoint::kBug, "replica/half-step-kept",
                           "the log is cut amid a step");
const FaultPoint kDisorder(FaultPoint::kBug, "replica/log-out-of-order",
                           "two records of the state log change places");
const FaultPoint kLostRecord(FaultPoint::kBug, "replica/record-lost",
                             "a record of the state log is not sent");

// Changes of a running step are sent when this many bytes of them wait, or when the step ends.
constexpr int64_t kSendAheadBytes = 1 << 20;

std::string RefusedText(const ResourceChange& change, const UpdateOrigin& origin) {
  return StrCat(origin.node.empty() ? "a step" : StrCat("node '", origin.node, "'"), " uses ",
                change.resource.type, " '", change.resource.name,
                "' on a parameter server with replicas: ", change.opaque,
                ", so a follower could not take it over; place the node on a worker (device ",
                "\"/job:worker/task:0\")");
}

KeptChange::Part KeepPart(const ResourceChange& change) {
  return {.container = std::string(change.resource.container),
          .name = std::string(change.resource.name),
          .type = std::string(change.resource.type),
          .action = std::string(change.action),
          .id = change.resource.id,
          .version = change.version,
          .values = change.values};
}

}  // namespace

ReplicaLog::ReplicaLog(Env& env, Scheduler& scheduler)
    : env_(env), changed_(scheduler, "changes that a follower needs") {}

// Resources that end with their session are not replicated, because no other process can continue a
// session.
bool ReplicaLog::IsPrivate(const ResourceChange& change) {
  return absl::StartsWith(change.resource.container, kPrivateContainerPrefix);
}

void ReplicaLog::Record(const StateChange& change) {
  MutexLock lock(mu_);
  const auto running = running_.find(change.origin.step_id);
  RunningStep* const step = running == running_.end() ? nullptr : &running->second;
  KeptChange kept{.step_id = change.origin.step_id, .incarnation = change.origin.incarnation};
  for (const ResourceChange& part : change.parts) {
    if (IsPrivate(part)) continue;
    NoteChange(part, change.origin, step);
    if (feeding_ && part.opaque.empty()) kept.parts.push_back(KeepPart(part));
  }
  ++counts_.records;
  ++last_;
  if (step != nullptr) {
    if (step->first == 0) step->first = last_;
    step->last = last_;
  }
  if (kept.parts.empty()) return;
  kept.position = last_;
  kept.device = std::string(change.origin.device);
  kept.node = std::string(change.origin.node);
  const int64_t before = queue_bytes_;
  queue_bytes_ += kept.bytes();
  queue_.push_back(std::move(kept));
  if (before < kSendAheadBytes && queue_bytes_ >= kSendAheadBytes) changed_.NotifyAll();
}

// Keeps `known_` up to date: the existing resources, and the values that each was created with.
// Marks `step` as refused if it has changed a resource that cannot be replicated.
void ReplicaLog::NoteChange(const ResourceChange& change, const UpdateOrigin& origin,
                            RunningStep* step) {
  const ResourceId& id = change.resource;
  if (!change.opaque.empty() && step != nullptr && change.action != kRemoveAction) {
    if (step->refused.empty()) step->refused = RefusedText(change, origin);
    step->refused_ids.insert(id.id);
  }
  if (change.action == kRemoveAction) {
    known_.erase(id.id);
  } else if (change.action == kCreateAction) {
    KnownResource& known = known_[id.id];
    known = {.container = std::string(id.container),
             .name = std::string(id.name),
             .type = std::string(id.type),
             .changed = change.version != 0 || !change.opaque.empty()};
    if (!known.changed) known.created_with = change.values;
  } else if (const auto found = known_.find(id.id); found != known_.end()) {
    found->second.changed = true;
    found->second.created_with.clear();
  }
}

// Returns those resources that still exist, with their names.
std::vector<ReplicaLog::RefusedResource> ReplicaLog::NamesOf(const std::set<uint64_t>& ids) const {
  std::vector<RefusedResource> names;
  for (const uint64_t id : ids) {
    const auto known = known_.find(id);
    if (known != known_.end()) names.push_back({known->second.container, known->second.name, id});
  }
  return names;
}

void ReplicaLog::StepBegins(int64_t step_id) {
  MutexLock lock(mu_);
  running_[step_id] = {};
}

void ReplicaLog::StepEnds(int64_t step_id, const Status& status, Done done) {
  Status end = status;
  std::vector<RefusedResource> refused;
  {
    MutexLock lock(mu_);
    RunningStep step;
    if (const auto found = running_.find(step_id); found != running_.end()) {
      step = std::move(found->second);
      running_.erase(found);
    }
    FindCut();
    if (end.ok() && !refused_.ok()) end = refused_;
    if (end.ok() && !step.refused.empty()) end = FailedPrecondition(step.refused);
    refused = NamesOf(step.refused_ids);
    // The step may have read values that earlier steps wrote, so the follower needs the changes
    // of those steps, too.
    const uint64_t needed = std::max(step.last, committed_);
    const bool wait =
        feeding_ && (whole_ || queue_bytes_ > kQueueBytesMax) && !kEarlyAnswer.Fires();
    if (end.ok() && wait && acknowledged_ < needed) {
      waiting_.push_back({needed, env_.NowNanos(), std::move(done)});
      changed_.NotifyAll();
      return;
    }
    if (feeding_ && !whole_) {
      // This step ends before the follower has its changes. So the follower may count as whole only
      // once it has them, even if an earlier step that still runs delays the cut.
      if (end.ok() && copied_ns_ != 0) copied_at_ = std::max(copied_at_, needed);
      changed_.NotifyAll();
    }
  }
  for (const auto& [container, name, id] : refused) {
    // Another step may remove it meanwhile, and may make a new one with its name and another id.
    if (store_ != nullptr) store_->RemoveIfId(container, name, id).IgnoreError();
  }
  std::move(done)(std::move(end));
}

// Finds the last position before the first change of any running step.
void ReplicaLog::FindCut() {
  uint64_t cut = last_;
  for (const auto& [id, step] : running_) {
    if (step.first != 0) cut = std::min(cut, step.first - 1);
  }
  if (kHalfStep.Fires()) cut = last_;
  committed_ = std::max(committed_, cut);
}

void ReplicaLog::CutIfOverdue(int64_t now_ns) {
  FindCut();
  uint64_t wanted = committed_;
  if (!waiting_.empty() && now_ns - waiting_.front().since_ns >= kCutNanosMax) {
    wanted = std::max(wanted, waiting_.front().position);
  }
  const bool copied = feeding_ && copied_ns_ != 0 && !whole_;
  if (copied && now_ns - copied_ns_ >= kCutNanosMax) wanted = std::max(wanted, copied_at_);
  if (wanted > committed_) ++counts_.forced_cuts;
  committed_ = wanted;
}

Status ReplicaLog::BeginFeed(const ResourceStore& store, std::vector<KeptChange>* copy) {
  std::map<uint64_t, KnownResource> known;
  {
    MutexLock lock(mu_);
    feeding_ = true;
    whole_ = false;
    copied_ns_ = 0;
    queue_.clear();
    queue_bytes_ = 0;
    sent_committed_ = acknowledged_ = 0;
    acknowledged_ns_ = 0;
    known = known_;
  }
  fed_.clear();
  for (const auto& [id, resource] : known) {
    const auto found = store.Lookup(resource.container, resource.name);
    // Skip a resource that has been removed or replaced in the meantime.
    if (!found.ok() || (*found)->TypeName() != string_view(resource.type)) continue;
    StatusOr<KeptChange> made = Copy(id, resource, **found);
    if (!made.ok()) {
      EndFeed();
      return made.status();
    }
    fed_[id] = made->parts[0].version;
    copy->push_back(*std::move(made));
  }
  MutexLock lock(mu_);
  copied_at_ = last_;
  copied_ns_ = env_.NowNanos();
  return OkStatus();
}

StatusOr<KeptChange> ReplicaLog::Copy(uint64_t id, const KnownResource& known,
                                      const Resource& resource) {
  KeptChange::Part part{.container = known.container,
                        .name = known.name,
                        .type = known.type,
                        .action = kCreateAction,
                        .id = id};
  StatusOr<Resource::Description> now = resource.DescribeNow();
  if (now.ok()) {
    part.values = std::move(now->values);
    part.version = now->version;
  } else if (!known.changed) {
    part.values = known.created_with;
  } else {
    return Unimplemented("the ", known.type, " '", known.name, "' in container '", known.container,
                         "' cannot be copied to a new follower");
  }
  KeptChange change;
  change.parts.push_back(std::move(part));
  return change;
}

bool ReplicaLog::WorthSending() const {
  if (!feeding_ || woken_ || queue_bytes_ >= kSendAheadBytes) return true;
  if (!whole_) return copied_ns_ != 0 && committed_ >= copied_at_;
  return !waiting_.empty() && committed_ > sent_committed_;
}

bool ReplicaLog::TakeBatch(int64_t deadline_ns, int64_t bytes_max, Batch* batch) {
  std::vector<KeptChange> taken;
  {
    MutexLock lock(mu_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return WorthSending(); };
    changed_.WaitUntil(mu_, deadline_ns, ready);
    woken_ = false;
    if (!feeding_) return false;
    CutIfOverdue(env_.NowNanos());
    int64_t bytes = 0;
    if (kSmallBatch.Fires()) bytes_max = 1;
    while (!queue_.empty() && bytes < bytes_max) {
      bytes += queue_.front().bytes();
      taken.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    queue_bytes_ -= bytes;
    counts_.fed_bytes += bytes;
    // If records before the cut are left for the next push, this push repeats the previous cut: the
    // position after the last record sent may be in the middle of a step, and a follower that takes
    // over must not keep half of a step.
    const bool all_sent = queue_.empty() || queue_.front().position > committed_;
    batch->committed = all_sent ? committed_ : sent_committed_;
    const bool becomes_whole = !whole_ && copied_ns_ != 0 && batch->committed >= copied_at_;
    whole_ = whole_ || becomes_whole;
    batch->whole = whole_;
    if (taken.empty() && batch->committed <= sent_committed_ && !becomes_whole) return false;
    sent_committed_ = batch->committed;
    ++counts_.pushes;
  }
  if (taken.size() > 1 && kDisorder.Fires()) {
    std::swap(taken[0].parts, taken[1].parts);
  }
  if (!taken.empty() && kLostRecord.Fires()) taken.pop_back();
  for (KeptChange& change : taken) {
    if (KeepForFollower(&change)) batch->changes.push_back(std::move(change));
  }
  return true;
}

// Drops the parts of `change` that the follower's copy already contains, or whose resources it does
// not have because they have been removed. Returns whether any part is left.
bool ReplicaLog::KeepForFollower(KeptChange* change) {
  auto& parts = change->parts;
  const auto unwanted = [this](const KeptChange::Part& part) {
    if (part.action == kCreateAction) {
      const bool is_new = fed_.emplace(part.id, part.version).second;
      return !is_new;
    }
    const auto fed = fed_.find(part.id);
    if (fed == fed_.end()) return true;
    if (part.action == kRemoveAction) {
      fed_.erase(fed);
      return false;
    }
    return part.version <= fed->second;
  };
  parts.erase(std::remove_if(parts.begin(), parts.end(), unwanted), parts.end());
  return !parts.empty();
}

ReplicaLog::Dones ReplicaLog::TakeEnded() {
  Dones ended;
  std::deque<WaitingStep> left;
  for (WaitingStep& step : waiting_) {
    if (step.position <= acknowledged_ || !feeding_) {
      ended.push_back(std::move(step.done));
    } else {
      left.push_back(std::move(step));
    }
  }
  waiting_.swap(left);
  return ended;
}

void ReplicaLog::End(Dones dones, const Status& status) {
  for (Done& done : dones) std::move(done)(status);
}

void ReplicaLog::Acknowledge(uint64_t committed) {
  Dones ended;
  {
    MutexLock lock(mu_);
    acknowledged_ = std::max(acknowledged_, committed);
    acknowledged_ns_ = env_.NowNanos();
    ended = TakeEnded();
  }
  End(std::move(ended), OkStatus());
}

void ReplicaLog::EndFeed() {
  Dones ended;
  {
    MutexLock lock(mu_);
    feeding_ = whole_ = false;
    queue_.clear();
    queue_bytes_ = 0;
    ended = TakeEnded();
  }
  End(std::move(ended), OkStatus());
}

bool ReplicaLog::follower_is_whole() const {
  MutexLock lock(mu_);
  return feeding_ && whole_;
}

void ReplicaLog::Refuse(const Status& why) {
  Dones ended;
  {
    MutexLock lock(mu_);
    refused_ = why;
    for (WaitingStep& step : waiting_) ended.push_back(std::move(step.done));
    waiting_.clear();
  }
  End(std::move(ended), why);
}

void ReplicaLog::Wake() {
  MutexLock lock(mu_);
  woken_ = true;
  changed_.NotifyAll();
}

ReplicaLog::Counts ReplicaLog::counts() const {
  MutexLock lock(mu_);
  Counts counts = counts_;
  counts.waiting_steps = static_cast<int64_t>(waiting_.size());
  counts.feeding = feeding_;
  counts.whole = feeding_ && whole_;
  counts.behind = feeding_ ? last_ - acknowledged_ : 0;
  counts.behind_bytes = queue_bytes_;
  counts.acknowledged_ns = acknowledged_ns_;
  return counts;
}

}  // namespace penstock

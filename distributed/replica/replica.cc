// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/replica.h"

#include <utility>

#include "core/base/fault_point.h"
#include "distributed/replica/feed_sender.h"

namespace penstock {
namespace {

const FaultPoint kFollowerLost(FaultPoint::kMishap, "replica/follower-lost",
                               "a primary gives up a follower that is well");
const FaultPoint kGoesOn(FaultPoint::kBug, "replica/goes-on-unasked",
                         "a primary goes on without its follower, and does not ask the witness");
const FaultPoint kServesOn(FaultPoint::kBug, "replica/not-fenced",
                           "a primary that was taken over from goes on serving");

constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kSayAgainNanos = 30'000'000'000;
// The time between two checks for an overdue cut while the log has nothing to send.
constexpr int64_t kFeedPollMs = 20;
constexpr int64_t kRetryMs = 50;
// The primary pushes at least this often to a follower that could take over.
constexpr int64_t kHeartbeatMs = 300;
// A process that becomes primary when neither replica has state waits this long for its follower
// before it serves.
constexpr int64_t kFirstFollowerMs = 5'000;
// After the state could not be copied, the primary tries again after this time.
constexpr int64_t kCopyAgainMs = 5'000;
// After a value was too large for a message, the primary tries another copy after this time. The
// value is unlikely to shrink, and a copy costs a lot before it fails.
constexpr int64_t kTooLargeAgainMs = 60'000;
// Returns whether the follower has received a push and refused it. Other errors mean that the push
// did not reach the follower, or that the process no longer follows.
bool IsRefusal(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kCancelled:
    case StatusCode::kAborted:
      return false;
    default:
      return true;
  }
}

}  // namespace

Replica::Replica(Options options)
    : options_(std::move(options)),
      calls_({.task = options_.task,
              .incarnation = options_.incarnation,
              .other = options_.other,
              .scheduler = options_.scheduler,
              .peer = options_.peer,
              .witness = options_.witness,
              .timeout_ms = options_.silent_ms}),
      changed_(*options_.scheduler, "the other replica of a parameter server"),
      shadow_(*options_.store, *options_.env, options_.shadow_bytes_max) {}

Replica::~Replica() { Stop(); }

void Replica::Start() {
  thread_ = options_.scheduler->StartThread("replica", [this] { Run(); });
}

void Replica::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  options_.log->Refuse(Unavailable(options_.task, " is shutting down"));
  options_.log->Wake();
  if (thread_ == nullptr) return;
  thread_ = nullptr;
  const ReplicaLog::Counts counts = options_.log->counts();
  if (counts.fed_bytes == 0) return;
  Say(StrCat("fed its followers ", counts.fed_bytes, " bytes of changes in ", counts.pushes,
             " messages"));
}

bool Replica::stopped() const {
  MutexLock lock(mu_);
  return stopped_;
}

wire::ReplicaRole Replica::role() const {
  MutexLock lock(mu_);
  return role_;
}

uint64_t Replica::epoch() const {
  MutexLock lock(mu_);
  return epoch_;
}

Replica::State Replica::state() const {
  MutexLock lock(mu_);
  const bool primary = role_ == wire::REPLICA_PRIMARY;
  return {.role = role_,
          .index = options_.index,
          .epoch = epoch_,
          .other = options_.other,
          .whole = role_ == wire::REPLICA_FOLLOWER && shadow_.whole(),
          .cannot_copy = primary ? std::string(cannot_copy_.message()) : "",
          .log = options_.log->counts()};
}

void Replica::Pause(int64_t millis) {
  MutexLock lock(mu_);
  const auto stopped = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_; };
  changed_.WaitUntil(mu_, options_.env->NowNanos() + millis * kNanosPerMilli, stopped);
}

// Prints a line; does not repeat the same line for a while.
void Replica::Say(const std::string& line) {
  const int64_t now_ns = options_.env->NowNanos();
  if (line == said_ && now_ns - said_ns_ < kSayAgainNanos) return;
  said_ = line;
  said_ns_ = now_ns;
  if (options_.say) options_.say(StrCat(options_.task, ", replica ", options_.index, ": ", line));
}

void Replica::Run() {
  while (!stopped()) {
    switch (role()) {
      case wire::REPLICA_FOLLOWER:
        WatchPrimary();
        break;
      case wire::REPLICA_PRIMARY:
        RunAsPrimary();
        break;
      default:
        Begin();
    }
  }
}

// Called while this replica has no state. If the other replica is the primary, follows it. If
// neither has any state, replica 0 becomes the primary.
void Replica::Begin() {
  const StatusOr<wire::GreetResponse> other = calls_.Greet();
  if (!other.ok()) {
    Say(StrCat("waits for the other one at ", options_.other, ": ", other.status().message()));
    return Pause(kRetryMs);
  }
  if (other->role() == wire::REPLICA_PRIMARY) return BeginToFollow(*other);
  // If the other replica is a follower, it will notice that its primary is gone.
  if (other->role() != wire::REPLICA_STARTING || options_.index != 0) return Pause(kRetryMs);
  const StatusOr<uint64_t> epoch = calls_.Claim(0);
  if (!epoch.ok()) {
    Say(StrCat("waits for the witness: ", epoch.status().message()));
    return Pause(kRetryMs);
  }
  Say(StrCat("begins as the primary, epoch ", *epoch));
  MutexLock lock(mu_);
  BecomePrimary(*epoch);
}

void Replica::BeginToFollow(const wire::GreetResponse& primary) {
  const uint64_t feed = options_.env->RandomU64() | 1;
  ForgetState();
  {
    // Changes the role before the call, because pushes may arrive before the answer to the call.
    MutexLock lock(mu_);
    role_ = wire::REPLICA_FOLLOWER;
    epoch_ = primary.epoch();
    feed_ = feed;
    primary_incarnation_ = primary.incarnation();
  }
  const Status followed = calls_.Follow(feed);
  if (followed.ok()) return Say(StrCat("follows the primary at ", options_.other));
  ForgetState();
  if (absl::IsFailedPrecondition(followed)) {
    Say(StrCat("cannot follow: ", followed.message()));
  }
  Pause(kRetryMs);
}

void Replica::ForgetState() {
  MutexLock lock(mu_);
  role_ = wire::REPLICA_STARTING;
  feed_ = 0;
  shadow_.Clear();
  shadow_error_ = OkStatus();
  claiming_ = false;
}

// Called in a follower: checks whether the primary is alive and still feeds this replica.
void Replica::WatchPrimary() {
  Pause(options_.greet_ms);
  StatusOr<wire::GreetResponse> primary = calls_.Greet();
  if (absl::IsUnavailable(primary.status())) {
    // Asks again, because a connection may break although the primary is alive.
    Pause(kRetryMs);
    primary = calls_.Greet();
  }
  if (stopped()) return;
  bool gone = !primary.ok(), dropped = false, whole = false;
  {
    MutexLock lock(mu_);
    whole = shadow_.whole();
    if (primary.ok()) {
      gone = primary->incarnation() != primary_incarnation_ ||
             primary->role() != wire::REPLICA_PRIMARY;
      dropped = !gone && primary->feed() != feed_;
    }
    if (!shadow_error_.ok()) {
      Say(StrCat("begins anew: ", shadow_error_.message()));
      dropped = true;
    }
  }
  if (dropped) {
    // The primary must send a complete copy again before it may rely on this replica.
    Say("is no longer fed; begins anew");
    return ForgetState();
  }
  if (!gone) return;
  if (whole) return TakeOver();
  Say("the primary is gone, before this replica had all of its state");
  ForgetState();
}

void Replica::TakeOver() {
  uint64_t wanted = 0;
  {
    // From here on, Push refuses changes of the state: a push that failed during the claim would
    // leave an incomplete state, although the witness may already have granted the epoch.
    MutexLock lock(mu_);
    if (!shadow_error_.ok() || !shadow_.whole()) return;  // WatchPrimary runs again
    claiming_ = true;
    wanted = epoch_ + 1;
  }
  const StatusOr<uint64_t> epoch = calls_.Claim(wanted);
  if (absl::IsAborted(epoch.status())) {
    Say(StrCat("the primary has gone on alone: ", epoch.status().message()));
    return ForgetState();
  }
  {
    MutexLock lock(mu_);
    claiming_ = false;
    if (epoch.ok()) {
      shadow_.TakeOver();
      BecomePrimary(*epoch);
    }
  }
  if (!epoch.ok()) {
    return Say(StrCat("the primary is gone; waits for the witness: ", epoch.status().message()));
  }
  Say(StrCat("has taken over as the primary, epoch ", *epoch));
  serving_ = true;
  options_.serve();
}

void Replica::BecomePrimary(uint64_t epoch) {
  role_ = wire::REPLICA_PRIMARY;
  epoch_ = epoch;
  feed_ = 0;
  feed_ends_ = false;
  leads_since_ns_ = options_.env->NowNanos();
}

void Replica::ServeWhenReady() {
  const int64_t waited_ns = options_.env->NowNanos() - leads_since_ns_;
  if (serving_) return;
  if (!has_follower() && waited_ns < kFirstFollowerMs * kNanosPerMilli) return;
  serving_ = true;
  options_.serve();
}

void Replica::RunAsPrimary() {
  uint64_t feed = 0;
  {
    MutexLock lock(mu_);
    const auto asked = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || feed_ != 0; };
    const int64_t until_ns = options_.env->NowNanos() + options_.greet_ms * kNanosPerMilli;
    changed_.WaitUntil(mu_, until_ns, asked);
    feed = feed_;
  }
  if (feed != 0) Feed(feed);
  ServeWhenReady();
}

void Replica::RememberCannotCopy(const Status& why, int64_t again_ms) {
  MutexLock lock(mu_);
  cannot_copy_ = why;
  cannot_copy_until_ns_ = options_.env->NowNanos() + again_ms * kNanosPerMilli;
}

// Feeds the follower until it is lost.
void Replica::Feed(uint64_t feed) {
  std::vector<KeptChange> copy;
  Status status = options_.log->BeginFeed(*options_.store, &copy);
  if (!status.ok()) {
    Say(StrCat("goes on without a follower: ", status.message()));
    RememberCannotCopy(status, kCopyAgainMs);
    MutexLock lock(mu_);
    feed_ = 0;
    feed_ends_ = false;
    return;
  }
  FeedSender sender(calls_, {.feed = feed,
                             .epoch = epoch(),
                             .push_bytes_max = options_.push_bytes_max,
                             .piece_bytes = options_.piece_bytes,
                             .silent_ms = options_.silent_ms});
  status = sender.SendCopy(copy);
  copy.clear();
  int64_t pushed_ns = 0;
  while (status.ok()) {
    ReplicaLog::Batch batch;
    const bool is_new = options_.log->TakeBatch(
        options_.env->NowNanos() + kFeedPollMs * kNanosPerMilli, options_.push_bytes_max, &batch);
    {
      MutexLock lock(mu_);
      if (stopped_) return;
      if (feed_ends_) status = Unavailable("it has begun anew");
    }
    const bool was_whole = sender.whole();
    if (was_whole && kFollowerLost.Fires()) status = Unavailable("it does not answer");
    // If nothing has changed for a while, sends an empty push, whose answer shows whether the
    // follower has taken over.
    const bool silent = options_.env->NowNanos() - pushed_ns > kHeartbeatMs * kNanosPerMilli;
    if (!status.ok() || (!is_new && !(silent && was_whole))) continue;
    pushed_ns = options_.env->NowNanos();
    status = sender.SendBatch(&batch, is_new);
    if (!status.ok()) break;
    options_.log->Acknowledge(sender.committed());
    if (sender.whole() && !was_whole) FollowerIsWhole();
  }
  // After these errors another copy would probably fail, too, so the next one begins only later.
  if (absl::IsResourceExhausted(status)) {
    RememberCannotCopy(status, kTooLargeAgainMs);
  } else if (!sender.whole() && IsRefusal(status)) {
    RememberCannotCopy(status, kCopyAgainMs);
  }
  LoseFollower(status);
}

void Replica::FollowerIsWhole() {
  RememberCannotCopy(OkStatus(), 0);
  Say(StrCat("its follower at ", options_.other, " has all of its state"));
  ServeWhenReady();
}

// Continues without a follower; if the follower could take over, first waits until the witness
// agrees. If the follower has taken over already, calls `fenced` and stops.
void Replica::LoseFollower(const Status& why) {
  Say(StrCat("lost its follower at ", options_.other, ": ", why.message()));
  uint64_t epoch = this->epoch();
  while (has_follower() && !kGoesOn.Fires()) {
    const StatusOr<uint64_t> claimed = calls_.Claim(this->epoch() + 1);
    if (claimed.ok()) {
      epoch = *claimed;
      break;
    }
    const Status& why_not = claimed.status();
    if (absl::IsAborted(why_not) && kServesOn.Fires()) break;
    if (absl::IsAborted(why_not)) {
      const Status fenced = Aborted(options_.task, " has been taken over: ", why_not.message());
      options_.log->Refuse(fenced);
      options_.fenced(fenced);
      MutexLock lock(mu_);
      stopped_ = true;
      return;
    }
    Say(StrCat("waits for the witness, to go on without a follower: ", why_not.message()));
    Pause(kRetryMs);
    if (stopped()) return;
  }
  {
    MutexLock lock(mu_);
    epoch_ = epoch;
    feed_ = 0;
    feed_ends_ = false;
  }
  options_.log->EndFeed();
}

wire::GreetResponse Replica::Greet(const wire::GreetRequest& request) {
  wire::GreetResponse response;
  response.set_task(options_.task);
  response.set_incarnation(options_.incarnation);
  MutexLock lock(mu_);
  response.set_role(role_);
  response.set_epoch(epoch_);
  if (role_ == wire::REPLICA_PRIMARY && !feed_ends_) response.set_feed(feed_);
  return response;
}

StatusOr<wire::FollowResponse> Replica::Follow(const wire::FollowRequest& request) {
  if (request.task() != options_.task || request.feed() == 0) {
    return InvalidArgument("a replica of '", request.task(), "' asks one of ", options_.task,
                           " to be fed by feed ", request.feed());
  }
  if (!request.takes_pieces()) {
    return FailedPrecondition(options_.task, ", replica ", options_.index,
                              ", has a newer version than the replica that asks to follow it, "
                              "which takes no values in pieces; start both processes of the ps "
                              "with the same version");
  }
  MutexLock lock(mu_);
  if (role_ != wire::REPLICA_PRIMARY || stopped_) {
    return Unavailable(options_.task, ", replica ", options_.index, ", is not the primary");
  }
  if (feed_ != 0) {
    feed_ends_ = true;
    return Unavailable("the feed of before has to end first");
  }
  if (options_.env->NowNanos() < cannot_copy_until_ns_) {
    return FailedPrecondition(cannot_copy_.message());
  }
  feed_ = request.feed();
  changed_.NotifyAll();
  return wire::FollowResponse();
}

StatusOr<wire::PushResponse> Replica::Push(const wire::PushRequest& request) {
  MutexLock lock(mu_);
  if (role_ != wire::REPLICA_FOLLOWER || request.feed() != feed_ || request.epoch() < epoch_) {
    return Aborted(options_.task, ", replica ", options_.index, ", no longer follows this primary");
  }
  if (claiming_) {
    return Aborted(options_.task, ", replica ", options_.index,
                   ", takes its primary for gone and claims the next epoch");
  }
  if (!shadow_error_.ok()) return shadow_error_;
  epoch_ = request.epoch();
  shadow_error_ = shadow_.Take(request);
  if (!shadow_error_.ok()) return shadow_error_;
  wire::PushResponse response;
  response.set_number(request.number());
  return response;
}

}  // namespace penstock

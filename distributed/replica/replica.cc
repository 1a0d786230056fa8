// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/replica.h"

#include <utility>

#include "core/base/fault_point.h"
#include "core/base/join.h"

namespace penstock {
namespace {

const FaultPoint kFollowerLost(FaultPoint::kMishap, "replica/follower-lost",
                               "a primary gives up a follower that is well");
const FaultPoint kGoesOn(FaultPoint::kBug, "replica/goes-on-unasked",
                         "a primary goes on without its follower, and does not ask the witness");
const FaultPoint kServesOn(FaultPoint::kBug, "replica/not-fenced",
                           "a primary that was taken over from goes on serving");

// A message of protobuf is smaller than 2 GiB.
constexpr size_t kPushBytesMax = 0x7fffffff;
constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kSayAgainNanos = 30'000'000'000;
// How often the log is checked while nothing happens, for cuts that are overdue.
constexpr int64_t kFeedPollMs = 20;
constexpr int64_t kRetryMs = 50;
// The primary pushes at least this often to a follower that could take over.
constexpr int64_t kHeartbeatMs = 300;
// A first primary waits this long for its follower before it serves.
constexpr int64_t kFirstFollowerMs = 5'000;
// State that could not be copied is tried again after this time.
constexpr int64_t kCopyAgainMs = 5'000;
// A value that is too large for a message is tried again after this time. It is unlikely to
// shrink, and a copy costs a lot before it fails.
constexpr int64_t kTooLargeAgainMs = 60'000;
// A copy gets more time than the changes of a step; kBytesPerMilli is slower than any link.
constexpr int64_t kCopyMs = 5'000;
constexpr int64_t kBytesPerMilli = 20'000;

template <class Response, class Call>
StatusOr<Response> Ask(Scheduler& scheduler, const char* what, Call call) {
  StatusOr<Response> answer = Internal("no answer");
  Wait wait(scheduler, what);
  call([&answer, done = wait.done()](StatusOr<Response> answered) mutable {
    answer = std::move(answered);
    std::move(done)(OkStatus());
  });
  (void)wait.Get();
  return answer;
}

// Returns whether the follower received a push and refused it. Other errors mean that it was not
// reached, or follows no longer.
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

StatusOr<wire::GreetResponse> Replica::AskGreet() {
  wire::GreetRequest request;
  request.set_task(options_.task);
  request.set_incarnation(options_.incarnation);
  auto answer = Ask<wire::GreetResponse>(
      *options_.scheduler, "the other replica to say what it is",
      [&](auto done) { options_.peer->Greet(request, options_.silent_ms, std::move(done)); });
  if (answer.ok() && answer->task() != options_.task) {
    return FailedPrecondition(options_.other, " is of ", answer->task(), ", expected ",
                              options_.task, ": the tasks' clusters differ");
  }
  return answer;
}

// Asks the witness for an epoch. Aborted if another replica has it.
Status Replica::Claim(uint64_t wanted, uint64_t* epoch) {
  wire::ClaimRequest request;
  request.set_task(options_.task);
  request.set_incarnation(options_.incarnation);
  request.set_epoch(wanted);
  const auto answer = Ask<wire::ClaimResponse>(
      *options_.scheduler, "the witness to give an epoch",
      [&](auto done) { options_.witness->Claim(request, options_.silent_ms, std::move(done)); });
  if (answer.ok()) *epoch = answer->epoch();
  return answer.status();
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

// Runs while this replica has no state: follows the other replica if that is the primary. If
// neither has any state, replica 0 becomes the primary.
void Replica::Begin() {
  const StatusOr<wire::GreetResponse> other = AskGreet();
  if (!other.ok()) {
    Say(StrCat("waits for the other one at ", options_.other, ": ", other.status().message()));
    return Pause(kRetryMs);
  }
  if (other->role() == wire::REPLICA_PRIMARY) return BeginToFollow(*other);
  // If the other replica is a follower, it will notice that its primary is gone.
  if (other->role() != wire::REPLICA_STARTING || options_.index != 0) return Pause(kRetryMs);
  uint64_t epoch = 0;
  const Status claimed = Claim(0, &epoch);
  if (!claimed.ok()) {
    Say(StrCat("waits for the witness: ", claimed.message()));
    return Pause(kRetryMs);
  }
  Say(StrCat("begins as the primary, epoch ", epoch));
  MutexLock lock(mu_);
  BecomePrimary(epoch);
}

void Replica::BeginToFollow(const wire::GreetResponse& primary) {
  wire::FollowRequest request;
  request.set_task(options_.task);
  request.set_incarnation(options_.incarnation);
  request.set_feed(options_.env->RandomU64() | 1);
  request.set_takes_pieces(true);
  ForgetState();
  {
    // The role changes first, because pushes may arrive before the answer.
    MutexLock lock(mu_);
    role_ = wire::REPLICA_FOLLOWER;
    epoch_ = primary.epoch();
    feed_ = request.feed();
    primary_incarnation_ = primary.incarnation();
  }
  const auto answer = Ask<wire::FollowResponse>(
      *options_.scheduler, "the primary to feed this replica",
      [&](auto done) { options_.peer->Follow(request, options_.silent_ms, std::move(done)); });
  if (answer.ok()) return Say(StrCat("follows the primary at ", options_.other));
  ForgetState();
  if (absl::IsFailedPrecondition(answer.status())) {
    Say(StrCat("cannot follow: ", answer.status().message()));
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

// Runs in a follower: checks whether the primary is alive, and still feeds this
// replica.
void Replica::WatchPrimary() {
  Pause(options_.greet_ms);
  StatusOr<wire::GreetResponse> primary = AskGreet();
  if (absl::IsUnavailable(primary.status())) {
    // Asks again, because a connection may break for other reasons.
    Pause(kRetryMs);
    primary = AskGreet();
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
    // From here on the state must not change: a push that fails during the claim would leave half
    // a state, although the witness may have given the epoch to this replica already.
    MutexLock lock(mu_);
    if (!shadow_error_.ok() || !shadow_.whole()) return;  // WatchPrimary runs again
    claiming_ = true;
    wanted = epoch_ + 1;
  }
  uint64_t epoch = 0;
  const Status claimed = Claim(wanted, &epoch);
  if (absl::IsAborted(claimed)) {
    Say(StrCat("the primary has gone on alone: ", claimed.message()));
    return ForgetState();
  }
  {
    MutexLock lock(mu_);
    claiming_ = false;
    if (claimed.ok()) {
      shadow_.TakeOver();
      BecomePrimary(epoch);
    }
  }
  if (!claimed.ok()) {
    return Say(StrCat("the primary is gone; waits for the witness: ", claimed.message()));
  }
  Say(StrCat("has taken over as the primary, epoch ", epoch));
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
  fed_ = feed;
  number_ = 0;
  bool said_whole = false;
  uint64_t committed = 0;
  int64_t pushed_ns = 0;
  status = PushCopy(copy);
  copy.clear();
  while (status.ok()) {
    ReplicaLog::Batch batch;
    const bool is_new = options_.log->TakeBatch(
        options_.env->NowNanos() + kFeedPollMs * kNanosPerMilli, options_.push_bytes_max, &batch);
    {
      MutexLock lock(mu_);
      if (stopped_) return;
      if (feed_ends_) status = Unavailable("it has begun anew");
    }
    if (said_whole && kFollowerLost.Fires()) status = Unavailable("it does not answer");
    // The empty push shows whether the follower has taken over, even if nothing changes here.
    const bool silent = options_.env->NowNanos() - pushed_ns > kHeartbeatMs * kNanosPerMilli;
    if (!status.ok() || (!is_new && !(silent && said_whole))) continue;
    pushed_ns = options_.env->NowNanos();
    wire::PushRequest push;
    push.set_committed(committed);  // the last cut: for pieces, which are sent before their records
    push.set_whole(said_whole);
    int64_t bytes = 0;
    for (const KeptChange& change : batch.changes) {
      if (status.ok()) status = AddRecord(change, &push);
      bytes += change.bytes();
    }
    batch.changes.clear();  // frees the values, so that the next updates need not copy them
    if (is_new) committed = batch.committed;
    push.set_committed(committed);
    push.set_whole(batch.whole || said_whole);
    if (status.ok()) status = PushOne(&push, bytes);
    if (!status.ok()) break;
    options_.log->Acknowledge(committed);
    if (!batch.whole || said_whole) continue;
    said_whole = true;
    RememberCannotCopy(OkStatus(), 0);
    Say(StrCat("its follower at ", options_.other, " has all of its state"));
    ServeWhenReady();
  }
  // After these errors another copy would fail, too, so it is tried only after some time.
  if (absl::IsResourceExhausted(status)) {
    RememberCannotCopy(status, kTooLargeAgainMs);
  } else if (!said_whole && IsRefusal(status)) {
    RememberCannotCopy(status, kCopyAgainMs);
  }
  LoseFollower(status);
}

Status Replica::PushCopy(const std::vector<KeptChange>& copy) {
  wire::PushRequest push;
  int64_t bytes = 0;
  for (const KeptChange& change : copy) {
    RETURN_IF_ERROR(AddRecord(change, &push));
    bytes += change.bytes();
    if (bytes < options_.push_bytes_max) continue;
    RETURN_IF_ERROR(PushOne(&push, bytes));
    bytes = 0;
  }
  return PushOne(&push, bytes);
}

// Adds a record to `push`. If some of its values travel in pieces, first sends each piece in a
// push of its own, with the `committed` and `whole` of `push`.
Status Replica::AddRecord(const KeptChange& change, wire::PushRequest* push) {
  wire::PushRequest one;
  for (const KeptChange::Part& part : change.parts) {
    for (const Tensor& value : part.values) {
      if (!TravelsInPieces(value, options_.piece_bytes)) continue;
      const auto send = [&](wire::ValuePiece piece) {
        one.set_committed(push->committed());
        one.set_whole(push->whole());
        // On the first piece the follower allocates memory for the entire value, which takes
        // time.
        const bool first = piece.begin() == 0;
        *one.mutable_piece() = std::move(piece);
        return PushOne(&one, first ? static_cast<int64_t>(value.bytes()) : options_.piece_bytes);
      };
      RETURN_IF_ERROR(SendPieces(value, options_.piece_bytes, send));
    }
  }
  return RecordToProto(change, push->add_record(), options_.piece_bytes);
}

// Sends the next push of the feed, and clears it. `bytes`: the approximate size of its
// values.
Status Replica::PushOne(wire::PushRequest* push, int64_t bytes) {
  push->set_feed(fed_);
  push->set_epoch(epoch());
  push->set_number(++number_);
  if (push->ByteSizeLong() > kPushBytesMax) {
    return ResourceExhausted("changes of ", push->ByteSizeLong(),
                             " bytes by one step cannot be replicated: at most ", kPushBytesMax,
                             " travel at once; partition the variables");
  }
  const int64_t base_ms = push->whole() ? options_.silent_ms : kCopyMs;
  const auto answer =
      Ask<wire::PushResponse>(*options_.scheduler, "the follower to take changes", [&](auto done) {
        options_.peer->Push(*push, base_ms + bytes / kBytesPerMilli, std::move(done));
      });
  push->Clear();
  if (!answer.ok()) return answer.status();
  if (answer->number() != number_) return DataLoss("the follower answered another push");
  return OkStatus();
}

// Continues without a follower. But if the follower has taken over, calls `fenced` and stops.
void Replica::LoseFollower(const Status& why) {
  Say(StrCat("lost its follower at ", options_.other, ": ", why.message()));
  uint64_t epoch = this->epoch();
  while (has_follower() && !kGoesOn.Fires()) {
    const Status claimed = Claim(this->epoch() + 1, &epoch);
    if (claimed.ok()) break;
    if (absl::IsAborted(claimed) && kServesOn.Fires()) break;
    if (absl::IsAborted(claimed)) {
      const Status fenced = Aborted(options_.task, " has been taken over: ", claimed.message());
      options_.log->Refuse(fenced);
      options_.fenced(fenced);
      MutexLock lock(mu_);
      stopped_ = true;
      return;
    }
    Say(StrCat("waits for the witness, to go on without a follower: ", claimed.message()));
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

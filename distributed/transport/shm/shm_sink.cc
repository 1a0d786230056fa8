// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/shm_sink.h"

#include <sys/socket.h>

#include <cstring>

#include "distributed/transport/records/commands.h"
#include "distributed/transport/shm/handshake.h"

namespace penstock {
namespace {

// The maximum number of bytes of free blocks that stay allocated while the arena is in use.
constexpr size_t kCachedBytesMax = size_t{256} << 20;
// An arena that was not used for this long returns the memory of its free blocks to the system.
constexpr int64_t kTrimNanos = 5'000'000'000;
constexpr int kReceivedPerCall = 64;

}  // namespace

// The arena of the segment, as one region.
class ShmSink::ArenaSource final : public MemorySource {
 public:
  explicit ArenaSource(std::shared_ptr<SharedSegment> segment) : segment_(std::move(segment)) {}

  void* Map(size_t bytes) override {
    if (bytes > SharedSegment::kArenaBytes || std::exchange(mapped_, true)) return nullptr;
    return segment_->arena();
  }
  void Unmap(void* region, size_t bytes) override {
    mapped_ = false;
    Discard(region, bytes);
  }
  bool Discard(void* part, size_t bytes) override {
    return segment_->Discard(static_cast<char*>(part), bytes);
  }

 private:
  const std::shared_ptr<SharedSegment> segment_;
  bool mapped_ = false;
};

ShmSink::ShmSink(UniqueFd socket, const TaskId& self, TaskSteps& steps, int64_t now_ns)
    : self_(self),
      steps_(steps),
      accepted_ns_(now_ns),
      fd_(socket.get()),
      socket_(std::move(socket)) {}

ShmSink::~ShmSink() {
  for (char* const block : blocks_) arena_->Deallocate(block);
}

void ShmSink::SendEncoded(OutgoingTensor tensor, HandedOver handed_over) {
  const Status fits = TensorRecordWriter::CheckHeader(tensor);
  if (!fits.ok()) {
    Refuse(tensor.step_id(), fits);
    return std::move(handed_over)();
  }
  Ended ended;
  {
    MutexLock lock(mu_);
    if (broken_) {
      ended.push_back({std::move(tensor), std::move(handed_over)});
    } else {
      queue_.Push(std::move(tensor), std::move(handed_over));
      Pump(&ended);
    }
  }
  Queue::End(std::move(ended));
}

void ShmSink::Refuse(int64_t step_id, const Status& why) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (broken_) return;
    queue_.PushRefusal(step_id, why);
    Pump(&ended);
  }
  Queue::End(std::move(ended));
}

void ShmSink::Drop(int64_t step_id) {
  Ended ended;
  {
    MutexLock lock(mu_);
    queue_.Drop(step_id, &ended);
    for (const Item& item : ended) {
      if (item.progress.in_arena != nullptr) FreeInArena(item.progress.in_arena);
    }
  }
  Queue::End(std::move(ended));
}

void ShmSink::Pump(Ended* ended) {
  if (writer_ == nullptr) return;
  while (!broken_) {
    const Status sent = PumpOnce(ended);
    if (!sent.ok()) return Break(sent);
    if (queue_.empty()) break;
    // There is no room. The raised flag asks the consumer for a wake-up message once it has made
    // room. The consumer may have made room just before the flag was raised, so checks again.
    const uint64_t seen = writer_->ring().consumed();
    segment_->state().producer_blocked.Raise();
    const Status looked = writer_->ring().Room().status();
    if (!looked.ok()) return Break(looked);
    if (writer_->ring().consumed() == seen) break;
    segment_->state().producer_blocked.Lower();
  }
  WakeIfRaised(segment_->state().consumer_sleeps);
}

Status ShmSink::PumpOnce(Ended* ended) {
  RETURN_IF_ERROR(queue_.SendSmall(*writer_, ended));
  if (!queue_.BeginLarge()) return OkStatus();
  const Status sent = SendLarge(ended);
  queue_.EndLarge();
  return sent;
}

Status ShmSink::SendLarge(Ended* ended) {
  std::deque<Item>& large = queue_.large();
  while (!large.empty() && !broken_) {
    RETURN_IF_ERROR(writer_->ring().Room().status());
    if (!MayHaveMoreUnread()) break;
    Item item = std::move(large.front());
    large.pop_front();
    const StatusOr<bool> sent = SendItem(&item);
    if (sent.ok() && !*sent) {
      large.push_front(std::move(item));
      break;
    }
    ended->push_back(std::move(item));
    RETURN_IF_ERROR(sent.status());
    WakeIfRaised(segment_->state().consumer_sleeps);
  }
  return OkStatus();
}

Status ShmSink::CopyToArena(Item* item) {
  RETURN_IF_ERROR(ReadCommands());  // frees the blocks that the consumer has finished with
  const size_t bytes = item->tensor.bytes();
  char* const block = static_cast<char*>(arena_->Allocate(bytes));
  if (block == nullptr) return OkStatus();
  WakeIfRaised(segment_->state().consumer_sleeps);
  used_ = true;
  SharedSegment& segment = *segment_;  // stays alive, because the caller holds this object
  mu_.Unlock();
  const bool reserved = segment.Reserve(block, bytes);
  if (reserved) std::memcpy(block, item->tensor.data(), bytes);
  mu_.Lock();
  if (reserved) {
    item->progress.in_arena = block;
    blocks_.insert(block);
  } else {
    arena_->Deallocate(block);
  }
  return OkStatus();
}

StatusOr<bool> ShmSink::SendItem(Item* item) {
  Progress& progress = item->progress;
  if (progress.in_arena == nullptr && !progress.begun) RETURN_IF_ERROR(CopyToArena(item));
  if (broken_) return true;  // sends nothing more
  if (progress.in_arena != nullptr) {
    const uint64_t offset = static_cast<uint64_t>(progress.in_arena - segment_->arena());
    ASSIGN_OR_RETURN(const bool sent,
                     writer_->Write(item->tensor, Place::kElsewhere, {.address = offset}));
    if (sent) {
      unread_.emplace_back(writer_->ring().appended(), item->tensor.bytes());
      unread_bytes_ += item->tensor.bytes();
    }
    return sent;
  }
  if (!progress.begun) {
    ASSIGN_OR_RETURN(progress.begun, writer_->Write(item->tensor, Place::kPieces));
    if (!progress.begun) return false;
  }
  RETURN_IF_ERROR(writer_->WritePieces(item->tensor, &progress.sent));
  return progress.sent == item->tensor.bytes();
}

bool ShmSink::MayHaveMoreUnread() {
  while (!unread_.empty() && unread_.front().first <= writer_->ring().consumed()) {
    unread_bytes_ -= unread_.front().second;
    unread_.pop_front();
  }
  return unread_.empty() || unread_bytes_ < kUnreadBytesMax;
}

void ShmSink::FreeInArena(char* block) {
  blocks_.erase(block);
  arena_->Deallocate(block);
}

Status ShmSink::ReadCommands() {
  const auto done = [this](uint64_t offset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (offset >= SharedSegment::kArenaBytes) return false;
    char* const block = segment_->arena() + offset;
    if (!blocks_.contains(block)) return false;
    FreeInArena(block);
    return true;
  };
  ASSIGN_OR_RETURN(const bool read,
                   penstock::ReadCommands(*commands_, consumer_, &subscribed_, done));
  if (read) WakeIfRaised(segment_->state().consumer_blocked);
  return OkStatus();
}

bool ShmSink::Advance() {
  Ended ended;
  std::vector<int64_t> subscribed;
  {
    MutexLock lock(mu_);
    if (writer_ == nullptr || broken_) return false;
    const Status read = ReadCommands();
    if (!read.ok()) Break(read);
    if (!broken_ && !queue_.empty()) Pump(&ended);
    subscribed.swap(subscribed_);
  }
  for (const int64_t step_id : subscribed) steps_.Subscribe(consumer_, step_id, shared_from_this());
  const bool worked = !ended.empty() || !subscribed.empty();
  Queue::End(std::move(ended));
  return worked;
}

bool ShmSink::HasMore() {
  MutexLock lock(mu_);
  return writer_ != nullptr && !broken_ && (!subscribed_.empty() || commands_->HasMore());
}

void ShmSink::AskForWakeUps() {
  MutexLock lock(mu_);
  if (writer_ != nullptr) segment_->state().producer_sleeps.Raise();
}

void ShmSink::StopWakeUps() {
  MutexLock lock(mu_);
  if (writer_ != nullptr) segment_->state().producer_sleeps.Lower();
}

bool ShmSink::Receive() {
  for (int i = 0; i < kReceivedPerCall; ++i) {
    StatusOr<std::optional<SocketMessage>> message = ReceiveMessage(fd_);
    if (!message.ok()) return false;
    if (!message->has_value()) return true;
    if (!consumer_.empty()) continue;  // a wake-up message
    const Status greeted = Greet(**std::move(message));
    if (greeted.ok()) continue;
    (void)SendMessage(fd_, WelcomeBytes(greeted));  // the peer may have gone already
    return false;
  }
  return true;
}

Status ShmSink::Greet(SocketMessage message) {
  ASSIGN_OR_RETURN(const Hello hello, Hello::Parse(message.bytes));
  RETURN_IF_ERROR(CheckUser(fd_));
  if (hello.incarnation != self_.incarnation) return Aborted(self_.ToString(), " has restarted");
  ASSIGN_OR_RETURN(std::shared_ptr<SharedSegment> segment, SharedSegment::Create());
  RETURN_IF_ERROR(SendMessage(fd_, WelcomeBytes(OkStatus()), segment->fd()));
  consumer_ = hello.consumer;
  MutexLock lock(mu_);
  segment_ = std::move(segment);
  source_ = std::make_unique<ArenaSource>(segment_);
  arena_ =
      std::make_unique<Arena>(*source_, Arena::Options{.region_bytes = SharedSegment::kArenaBytes,
                                                       .cached_bytes_max = kCachedBytesMax,
                                                       .bytes_limit = SharedSegment::kArenaBytes});
  writer_ = std::make_unique<TensorRecordWriter>(segment_->tensors());
  commands_ = std::make_unique<RingReader>(segment_->commands());
  return OkStatus();
}

bool ShmSink::Tick(int64_t now_ns) {
  MutexLock lock(mu_);
  if (writer_ == nullptr) return now_ns - accepted_ns_ < kHandshakeNanosMax;
  if (std::exchange(used_, false) || !blocks_.empty()) {
    used_ns_ = now_ns;
  } else if (now_ns - used_ns_ > kTrimNanos && arena_->stats().bytes_cached > 0) {
    arena_->ReturnFree();
  }
  return true;
}

void ShmSink::Break(const Status& why) {
  if (std::exchange(broken_, true)) return;
  (void)SendMessage(fd_, WelcomeBytes(why));  // the peer may have gone already
  shutdown(fd_, SHUT_RDWR);                   // the loop notices, and calls Close
}

void ShmSink::WakeIfRaised(WaitFlag& flag) {
  // Ignores the error: either the peer has gone, which the loop notices, or its socket is full, and
  // then the messages in it will wake the peer.
  if (!broken_ && flag.LowerIfRaised()) (void)SendMessage(fd_, "!");
}

void ShmSink::Close() {
  Ended ended;
  {
    MutexLock lock(mu_);
    broken_ = true;
    queue_.DropAll(&ended);
    if (socket_.valid()) shutdown(fd_, SHUT_RDWR);
    socket_.Close();
  }
  Queue::End(std::move(ended));
}

}  // namespace penstock

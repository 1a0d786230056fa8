// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/shm_sink.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "distributed/transport/shm/handshake.h"

namespace penstock {
namespace {

// Free blocks of the arena keep their memory up to this, for as long as the arena is in use.
constexpr size_t kCachedBytesMax = size_t{256} << 20;
constexpr int64_t kTrimNanos = 5'000'000'000;
constexpr int kMessagesPerCall = 64;

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
      ended.push_back(std::move(handed_over));
    } else {
      std::deque<Item>& queue = tensor.bytes() <= kInlineBytesMax ? small_ : large_;
      queue.push_back({std::move(tensor), std::move(handed_over)});
      Pump(&ended);
    }
  }
  Call(std::move(ended));
}

void ShmSink::Refuse(int64_t step_id, const Status& why) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (broken_) return;
    refusals_.push_back({step_id, why});
    Pump(&ended);
  }
  Call(std::move(ended));
}

void ShmSink::Drop(int64_t step_id) {
  Ended ended;
  std::deque<Item> dropped;  // tensors end without the lock
  {
    MutexLock lock(mu_);
    for (std::deque<Item>* queue : {&small_, &large_}) {
      const auto kept = std::stable_partition(
          queue->begin(), queue->end(),
          [step_id](const Item& item) { return item.tensor.step_id() != step_id; });
      for (auto item = kept; item != queue->end(); ++item) {
        if (item->in_arena != nullptr) FreeInArena(item->in_arena);
        ended.push_back(std::move(item->handed_over));
      }
      std::move(kept, queue->end(), std::back_inserter(dropped));
      queue->erase(kept, queue->end());
    }
  }
  Call(std::move(ended));
}

bool ShmSink::IsIdle() const { return refusals_.empty() && small_.empty() && large_.empty(); }

void ShmSink::Pump(Ended* ended) {
  if (writer_ == nullptr) return;
  while (!broken_) {
    const Status sent = PumpOnce(ended);
    if (!sent.ok()) return Break(sent);
    if (IsIdle()) break;
    // There is no room. The consumer rings when it has made some, unless it has just done so.
    const uint64_t seen = writer_->ring().consumed();
    segment_->state().producer_blocked.Raise();
    const Status looked = writer_->ring().Room().status();
    if (!looked.ok()) return Break(looked);
    if (writer_->ring().consumed() == seen) break;
    segment_->state().producer_blocked.Lower();
  }
  RingIf(segment_->state().consumer_sleeps);
}

Status ShmSink::PumpOnce(Ended* ended) {
  RETURN_IF_ERROR(SendRefusals());
  RETURN_IF_ERROR(SendSmall(ended));
  if (sending_large_) return OkStatus();
  sending_large_ = true;
  const Status sent = SendLarge(ended);
  sending_large_ = false;
  return sent;
}

Status ShmSink::SendRefusals() {
  while (!refusals_.empty()) {
    const Refusal& next = refusals_.front();
    ASSIGN_OR_RETURN(const bool sent, writer_->WriteRefusal(next.step_id, next.why));
    if (!sent) break;
    refusals_.pop_front();
  }
  return OkStatus();
}

Status ShmSink::SendSmall(Ended* ended) {
  while (!small_.empty()) {
    ASSIGN_OR_RETURN(const bool sent, writer_->Write(small_.front().tensor, Place::kInline, 0));
    if (!sent) break;
    ended->push_back(std::move(small_.front().handed_over));
    small_.pop_front();
  }
  return OkStatus();
}

Status ShmSink::SendLarge(Ended* ended) {
  while (!large_.empty() && !broken_) {
    RETURN_IF_ERROR(writer_->ring().Room().status());
    if (!MayHaveMoreUnread()) break;
    Item item = std::move(large_.front());
    large_.pop_front();
    const StatusOr<bool> sent = SendItem(&item);
    if (sent.ok() && !*sent) {
      large_.push_front(std::move(item));
      break;
    }
    ended->push_back(std::move(item.handed_over));
    RETURN_IF_ERROR(sent.status());
    RingIf(segment_->state().consumer_sleeps);
  }
  return OkStatus();
}

Status ShmSink::CopyToArena(Item* item) {
  RETURN_IF_ERROR(ReadCommands());  // which free blocks
  const size_t bytes = item->tensor.bytes();
  char* const block = static_cast<char*>(arena_->Allocate(bytes));
  if (block == nullptr) return OkStatus();
  RingIf(segment_->state().consumer_sleeps);
  used_ = true;
  SharedSegment& segment = *segment_;  // which lives as long as this object, held by the caller
  mu_.Unlock();
  const bool reserved = segment.Reserve(block, bytes);
  if (reserved) std::memcpy(block, item->tensor.data(), bytes);
  mu_.Lock();
  if (reserved) {
    item->in_arena = block;
    blocks_.insert(block);
  } else {
    arena_->Deallocate(block);
  }
  return OkStatus();
}

StatusOr<bool> ShmSink::SendItem(Item* item) {
  if (item->in_arena == nullptr && !item->begun) RETURN_IF_ERROR(CopyToArena(item));
  if (broken_) return true;  // nothing is sent any more
  if (item->in_arena != nullptr) {
    const uint64_t offset = static_cast<uint64_t>(item->in_arena - segment_->arena());
    ASSIGN_OR_RETURN(const bool sent, writer_->Write(item->tensor, Place::kArena, offset));
    if (sent) {
      unread_.emplace_back(writer_->ring().appended(), item->tensor.bytes());
      unread_bytes_ += item->tensor.bytes();
    }
    return sent;
  }
  if (!item->begun) {
    ASSIGN_OR_RETURN(item->begun, writer_->Write(item->tensor, Place::kPieces, 0));
    if (!item->begun) return false;
  }
  RETURN_IF_ERROR(writer_->WritePieces(item->tensor, &item->sent));
  return item->sent == item->tensor.bytes();
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
  ASSIGN_OR_RETURN(size_t readable, commands_->Readable());
  if (readable == 0) return OkStatus();
  for (; readable >= sizeof(Command); readable -= sizeof(Command)) {
    Command command;
    commands_->Read(&command, sizeof(command));
    if (command.kind == Command::kSubscribe) {
      subscribed_.push_back(static_cast<int64_t>(command.value));
    } else if (command.kind == Command::kFree && command.value < SharedSegment::kArenaBytes &&
               blocks_.contains(segment_->arena() + command.value)) {
      FreeInArena(segment_->arena() + command.value);
    } else {
      return DataLoss("the consumer ", consumer_, " sent a command of kind ", command.kind, " for ",
                      command.value);
    }
  }
  if (readable > 0) return DataLoss("the consumer ", consumer_, " sent half a command");
  commands_->Release();
  RingIf(segment_->state().consumer_blocked);
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
    if (!broken_ && !IsIdle()) Pump(&ended);
    subscribed.swap(subscribed_);
  }
  for (const int64_t step_id : subscribed) steps_.Subscribe(consumer_, step_id, shared_from_this());
  const bool worked = !ended.empty() || !subscribed.empty();
  Call(std::move(ended));
  return worked;
}

bool ShmSink::HasMore() {
  MutexLock lock(mu_);
  return writer_ != nullptr && !broken_ && (!subscribed_.empty() || commands_->HasMore());
}

void ShmSink::FallAsleep() {
  MutexLock lock(mu_);
  if (writer_ != nullptr) segment_->state().producer_sleeps.Raise();
}

void ShmSink::WakeUp() {
  MutexLock lock(mu_);
  if (writer_ != nullptr) segment_->state().producer_sleeps.Lower();
}

bool ShmSink::Receive() {
  for (int i = 0; i < kMessagesPerCall; ++i) {
    StatusOr<std::optional<SocketMessage>> message = ReceiveMessage(fd_);
    if (!message.ok()) return false;
    if (!message->has_value()) return true;
    if (!consumer_.empty()) continue;  // the bell
    const Status greeted = Greet(**std::move(message));
    if (greeted.ok()) continue;
    (void)SendMessage(fd_, WelcomeBytes(greeted));  // to a peer that may have gone
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
  (void)SendMessage(fd_, WelcomeBytes(why));  // to a peer that may have gone
  shutdown(fd_, SHUT_RDWR);                   // the loop finds it closed, and calls Close
}

void ShmSink::RingIf(WaitFlag& flag) {
  // A peer that has gone is noticed by the loop; one that does not read has enough to wake it.
  if (!broken_ && flag.TakeDown()) (void)SendMessage(fd_, "!");
}

void ShmSink::Close() {
  Ended ended;
  std::deque<Item> dropped;  // tensors end without the lock
  {
    MutexLock lock(mu_);
    broken_ = true;
    for (std::deque<Item>* queue : {&small_, &large_}) {
      for (Item& item : *queue) ended.push_back(std::move(item.handed_over));
      std::move(queue->begin(), queue->end(), std::back_inserter(dropped));
      queue->clear();
    }
    refusals_.clear();
    if (socket_.valid()) shutdown(fd_, SHUT_RDWR);
    socket_.Close();
  }
  Call(std::move(ended));
}

void ShmSink::Call(Ended ended) {
  for (HandedOver& handed_over : ended) std::move(handed_over)();
}

}  // namespace penstock

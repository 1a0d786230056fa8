// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/shm_stream.h"

#include <sys/socket.h>

#include <utility>

#include "distributed/transport/shm/handshake.h"

namespace penstock {
namespace {

constexpr int kRecordsPerCall = 64;
constexpr int kSentPerCall = 64;
constexpr int kDrainCalls = 1024;  // enough calls to read all records of a full ring

constexpr CannotConnectText kNoSharedMemory = {"--protocol=shm: no shared memory",
                                               "choose --protocol=auto or grpc in all tasks"};

}  // namespace

ShmStream::ShmStream(const TaskId& self, const TaskId& producer, TaskSteps& steps, Lost lost,
                     int64_t now_ns)
    : self_(self),
      producer_(producer),
      steps_(steps),
      when_lost_(std::move(lost)),
      made_ns_(now_ns) {}

Status ShmStream::Connect(const std::string& socket_name) {
  ASSIGN_OR_RETURN(UniqueFd socket, ConnectAbstract(socket_name));
  RETURN_IF_ERROR(CheckUser(socket.get()));
  const Hello hello{.consumer = self_.name, .incarnation = producer_.incarnation};
  RETURN_IF_ERROR(SendMessage(socket.get(), hello.ToBytes()));
  MutexLock lock(mu_);
  fd_ = socket.get();
  socket_ = std::move(socket);
  return OkStatus();
}

void ShmStream::WhenOpen(Transport::Reached opened) {
  std::optional<Status> status;
  {
    MutexLock lock(mu_);
    status = subscriptions_.WhenOpen(&opened);
  }
  if (status.has_value()) std::move(opened)(*status);
}

bool ShmStream::Subscribe(int64_t step_id) {
  MutexLock lock(mu_);
  if (!subscriptions_.Add(step_id)) return false;
  Flush();
  if (state_ != nullptr) WakeIfRaised(state_->producer_sleeps);
  return true;
}

void ShmStream::Unsubscribe(int64_t step_id) {
  MutexLock lock(mu_);
  subscriptions_.Remove(step_id);
}

bool ShmStream::Wants(int64_t step_id) {
  MutexLock lock(mu_);
  return subscriptions_.Wants(step_id);
}

void ShmStream::Free(uint64_t offset) {
  MutexLock lock(mu_);
  if (!subscriptions_.lost().ok()) return;
  // Need not wake the producer, which reads commands before it allocates more memory in the arena.
  subscriptions_.AddCommand({Command::kDone, offset});
  Flush();
}

void ShmStream::Flush() {
  if (commands_ == nullptr) return;
  while (true) {
    if (!WriteCommands(*commands_, &subscriptions_.unwritten()).ok()) {
      shutdown(fd_, SHUT_RDWR);  // the loop notices
      return;
    }
    if (subscriptions_.unwritten().empty() || state_->consumer_blocked.IsRaised()) return;
    state_->consumer_blocked.Raise();  // then check once more
  }
}

void ShmStream::WakeIfRaised(WaitFlag& flag) {
  // Ignores the error: either the peer has gone, which the loop notices, or its socket is full, and
  // then the messages in it will wake the peer.
  if (subscriptions_.lost().ok() && flag.LowerIfRaised()) (void)SendMessage(fd_, "!");
}

bool ShmStream::Advance() {
  if (reader_ == nullptr || !broken_.ok()) return false;
  const auto wants = [this](int64_t step_id) { return Wants(step_id); };
  TensorRecordReader::Received received;
  int count = 0;
  for (; count < kRecordsPerCall; ++count) {
    const StatusOr<bool> read = reader_->Read(wants, &received);
    if (!read.ok()) {
      broken_ = read.status();
      shutdown(fd_, SHUT_RDWR);  // the loop notices
      break;
    }
    if (!*read) break;
    for (auto& t : received.tensors) {
      steps_.Deliver(t.step_id, t.key, std::move(t.value), t.is_dead);
    }
    for (const auto& r : received.refused) steps_.Fail(r.step_id, r.why);
    received.tensors.clear();
    received.refused.clear();
  }
  reader_->DropUnwanted(wants);
  MutexLock lock(mu_);
  if (count > 0) WakeIfRaised(segment_->state().producer_blocked);
  Flush();
  return count > 0;
}

bool ShmStream::HasMore() {
  return reader_ != nullptr && broken_.ok() && reader_->ring().HasMore();
}

void ShmStream::AskForWakeUps() {
  if (reader_ != nullptr) segment_->state().consumer_sleeps.Raise();
}

void ShmStream::StopWakeUps() {
  if (reader_ != nullptr) segment_->state().consumer_sleeps.Lower();
}

bool ShmStream::Receive() {
  for (int i = 0; i < kSentPerCall && broken_.ok(); ++i) {
    StatusOr<std::optional<SocketMessage>> message = ReceiveMessage(fd_);
    if (!message.ok()) {
      // Reads what the producer has published: if it has closed the connection without an error,
      // that is valid.
      for (int drained = 0; drained < kDrainCalls && Advance(); ++drained) {
      }
      if (broken_.ok()) broken_ = message.status();
    } else if (!message->has_value()) {
      return true;
    } else if (reader_ == nullptr) {
      broken_ = Open(**std::move(message));
    } else if ((*message)->bytes.size() > 1) {  // an error, not a wake-up message
      broken_ = ParseWelcome((*message)->bytes);
    }
  }
  return broken_.ok();
}

Status ShmStream::Open(SocketMessage message) {
  RETURN_IF_ERROR(ParseWelcome(message.bytes));
  if (!message.fd.valid()) return DataLoss("the producer's welcome came without its memory");
  ASSIGN_OR_RETURN(segment_, SharedSegment::Open(std::move(message.fd)));
  auto memory =
      std::make_shared<ReceivedMemory>(segment_, [stream = weak_from_this()](uint64_t offset) {
        if (const auto self = stream.lock()) self->Free(offset);
      });
  reader_ = std::make_unique<ArenaReader>(segment_->tensors(), std::move(memory), steps_);
  Subscriptions::Calls opened;
  {
    MutexLock lock(mu_);
    commands_ = std::make_unique<RingWriter>(segment_->commands());
    state_ = &segment_->state();
    Flush();
    WakeIfRaised(state_->producer_sleeps);
    opened = subscriptions_.MarkOpen();
  }
  Subscriptions::Call(std::move(opened), OkStatus());
  return OkStatus();
}

bool ShmStream::Tick(int64_t now_ns) {
  if (reader_ != nullptr || now_ns - made_ns_ < kHandshakeNanosMax) return true;
  broken_ = Unavailable("no answer within ", kHandshakeNanosMax / 1'000'000'000, " s");
  return false;
}

void ShmStream::MarkLost(const Status& why) {
  const auto self = shared_from_this();
  const Status status = DescribeLost(producer_, why, kNoSharedMemory);
  when_lost_(this);
  std::optional<Subscriptions::Ended> ended;
  {
    MutexLock lock(mu_);
    ended = subscriptions_.MarkLost(status);
    if (!ended.has_value()) return;
    if (socket_.valid()) shutdown(fd_, SHUT_RDWR);
    socket_.Close();
  }
  ReportLost(*std::move(ended), steps_, status, why);
}

void ShmStream::Close() {
  MarkLost(broken_.ok() ? Cancelled("this task is shutting down") : broken_);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// ShmSink: the producer's end of one connection: it takes the consumer's subscriptions and sends it
// tensors.
//
// If there is room, Send copies the tensor at once, on the caller's thread: a small one into the
// ring, a large one into the arena, where it stays while the consumer uses it. One caller at a time
// copies large tensors, without the lock; other callers leave theirs in the queue for it. If the
// arena is full, the tensor goes through the ring in pieces.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/base/mutex.h"
#include "core/tensor/arena.h"
#include "distributed/transport/loop/loop.h"
#include "distributed/transport/records/send_queue.h"
#include "distributed/transport/records/tensor_record_writer.h"
#include "distributed/transport/shm/segment.h"
#include "distributed/transport/shm/unix_socket.h"
#include "distributed/transport/transport.h"

namespace penstock {

// The maximum number of bytes of large tensors (more than kInlineBytesMax) that are sent and not
// yet read. If none is unread, a tensor of any size may be sent. Further tensors wait in the queue
// and are not copied.
inline constexpr uint64_t kUnreadBytesMax = uint64_t{32} << 20;

class ShmSink final : public TensorSink,
                      public TransportLoop::End,
                      public std::enable_shared_from_this<ShmSink> {
 public:
  // Takes over the accepted connection `socket`. `steps` is borrowed until Close.
  ShmSink(UniqueFd socket, const TaskId& self, TaskSteps& steps, int64_t now_ns);
  ~ShmSink() override;

  // Implements TensorSink:
  void Refuse(int64_t step_id, const Status& why) override;
  void Drop(int64_t step_id) override;
  // Implements End:
  int fd() const override { return fd_; }
  bool Advance() override;
  bool HasMore() override;
  void AskForWakeUps() override;
  void StopWakeUps() override;
  bool Receive() override;
  bool Tick(int64_t now_ns) override;
  void Close() override;

 private:
  // How much of a large tensor has been sent.
  struct Progress {
    char* in_arena = nullptr;  // the tensor's bytes were copied to this offset of the arena
    bool begun = false;        // true if the tensor is sent in pieces
    size_t sent = 0;
  };
  using Queue = SendQueue<Progress>;
  using Item = Queue::Item;
  using Ended = Queue::Ended;
  class ArenaSource;

  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override;
  Status Greet(SocketMessage message);
  Status ReadCommands() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends queued tensors as long as there is room. An error breaks the connection.
  void Pump(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status PumpOnce(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status SendLarge(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Copies the item to the arena if there is room there, or sends it in pieces. Returns true when
  // all of it has been sent, or when it can no longer be sent.
  StatusOr<bool> SendItem(Item* item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CopyToArena(Item* item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayHaveMoreUnread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeInArena(char* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Break(const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeIfRaised(WaitFlag& flag) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TaskId self_;
  TaskSteps& steps_;
  const int64_t accepted_ns_;
  const int fd_;
  std::string
      consumer_;  // the consumer's task; "" before its Hello. Used by the loop's thread only

  Mutex mu_;
  UniqueFd socket_ ABSL_GUARDED_BY(mu_);
  // This and the following members are set once the consumer has sent Hello.
  std::shared_ptr<SharedSegment> segment_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ArenaSource> source_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Arena> arena_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<TensorRecordWriter> writer_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<RingReader> commands_ ABSL_GUARDED_BY(mu_);
  std::vector<int64_t> subscribed_ ABSL_GUARDED_BY(mu_);    // read, for Advance to process
  absl::flat_hash_set<char*> blocks_ ABSL_GUARDED_BY(mu_);  // blocks of the arena in use
  std::deque<std::pair<uint64_t, uint64_t>> unread_
      ABSL_GUARDED_BY(mu_);  // by large tensor: where its record ends in the ring, and its size
  uint64_t unread_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  Queue queue_ ABSL_GUARDED_BY(mu_);
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  bool used_ ABSL_GUARDED_BY(mu_) = false;    // true if the arena was used since the last tick
  int64_t used_ns_ ABSL_GUARDED_BY(mu_) = 0;  // the last tick at which it was used
};

}  // namespace penstock

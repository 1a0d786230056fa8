// SPDX-License-Identifier: Apache-2.0
//
// ShmStream: the consumer's end of one connection. It subscribes to steps and delivers the
// tensors that arrive.
//
// A stream takes subscriptions before it is connected, and sends them to the producer once it is
// connected.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "distributed/transport/loop/loop.h"
#include "distributed/transport/records/subscriptions.h"
#include "distributed/transport/shm/arena_reader.h"
#include "distributed/transport/shm/segment.h"
#include "distributed/transport/shm/unix_socket.h"
#include "distributed/transport/transport.h"

namespace penstock {

class ShmStream final : public TransportLoop::End, public std::enable_shared_from_this<ShmStream> {
 public:
  // Called when the stream is lost, without locks.
  using Lost = std::function<void(const ShmStream*)>;

  // `steps` is borrowed until Close.
  ShmStream(const TaskId& self, const TaskId& producer, TaskSteps& steps, Lost lost,
            int64_t now_ns);

  const TaskId& producer() const { return producer_; }
  // Connects to the producer's socket and sends Hello. After that the stream belongs to
  // a loop.
  Status Connect(const std::string& socket_name);
  // Calls `opened` once: when the segment has arrived, or with the error.
  void WhenOpen(Transport::Reached opened);
  // Subscribes to a step. Returns false if the stream is lost.
  bool Subscribe(int64_t step_id);
  void Unsubscribe(int64_t step_id);
  // Ends the stream and fails its steps. `why` is FailedPrecondition if the tasks cannot share
  // memory.
  void MarkLost(const Status& why);

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
  Status Open(SocketMessage message);
  bool Wants(int64_t step_id);
  // Tells the producer that it may use the block of the arena at `offset` again. May be called on
  // any thread, without locks.
  void Free(uint64_t offset);
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeIfRaised(WaitFlag& flag) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TaskId self_;
  const TaskId producer_;
  TaskSteps& steps_;
  const Lost when_lost_;
  const int64_t made_ns_;
  int fd_ = -1;  // set by Connect
  // Used by the loop's thread only.
  std::shared_ptr<SharedSegment> segment_;  // set when Welcome arrives
  std::unique_ptr<ArenaReader> reader_;
  Status broken_;  // the error for which the loop has to end the stream

  Mutex mu_;
  UniqueFd socket_ ABSL_GUARDED_BY(mu_);
  SharedState* state_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::unique_ptr<RingWriter> commands_ ABSL_GUARDED_BY(mu_);  // set when Welcome arrives
  Subscriptions subscriptions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// QueuePair: one connection over RDMA: a reliable queue pair, its completion queue, and a ring of
// bytes for each direction.
//
// Flush writes the bytes that were published in out_ring() (loop/ring.h) into the other end's
// memory, by an RDMA write with an immediate. The other end's Poll makes them visible in its
// in_ring(). One message carries all bytes published so far, so messages are few under load. Read
// copies large ranges from the other end's memory.
//
// Not thread-safe, except the rings: one other thread may use each end of them at the same time.
// Errors mean that the connection is broken. Once the QueuePair is destroyed, the device accesses
// neither its memory nor the targets of Read.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/verbs/credits.h"
#include "distributed/transport/verbs/device.h"
#include "distributed/transport/verbs/endpoint.h"
#include "distributed/transport/verbs/settings.h"

namespace penstock {

class QueuePair {
 public:
  // The other end counts as lost if it is silent for this long. It pings each second.
  static constexpr int64_t kSilenceNanosMax = 6'000'000'000;
  static constexpr int64_t kPingNanos = 1'000'000'000;

  // ResourceExhausted or FailedPrecondition if the device lacks a resource or an ability. The
  // rings' lengths are powers of two, up to Immediate::kBytesMax.
  static StatusOr<std::unique_ptr<QueuePair>> Create(std::shared_ptr<VerbsDevice> device,
                                                     const VerbsSettings& settings,
                                                     size_t out_bytes, size_t in_bytes);
  QueuePair(const QueuePair&) = delete;
  ~QueuePair();

  // Returns the description of this end that the other end needs for its Connect.
  const VerbsEndpoint& own() const { return own_; }
  // Connects to the other end, which may send from then on. FailedPrecondition if the settings
  // disagree, or the device has no route to it. Blocks while the system resolves the address.
  Status Connect(const VerbsEndpoint& other, int64_t now_ns);

  RingMemory out_ring() { return {&out_positions_, out_, out_bytes_}; }
  RingMemory in_ring() { return {&in_positions_, in_, in_bytes_}; }

  // Sends the published bytes that are not sent yet, as far as the other end has room for
  // messages.
  Status Flush();
  // Tells the other end how much of in_ring() was consumed, if enough was consumed since the last
  // message.
  Status Confirm();
  bool CanRead() const { return reads_ < kReadsMax; }
  // Begins to copy `bytes` (up to kReadBytesMax) from the other end's memory to `to`. Reads end in
  // the order in which they began; Poll counts them. REQUIRES: CanRead().
  Status Read(char* to, uint32_t local_key, uint64_t from, uint32_t remote_key, size_t bytes);
  static constexpr size_t kReadBytesMax = size_t{1} << 20;

  // Processes the events of the device. Returns how many reads have ended.
  StatusOr<int> Poll(int64_t now_ns);
  // Returns true if Poll has something to do.
  bool HasEvents();
  // Returns a descriptor that becomes readable at the first event after Arm, until TakeEvents is
  // called.
  int fd() const { return channel_->fd; }
  void Arm();
  void TakeEvents();

  // Pings the other end, unless the last ping was less than kPingNanos / 2 ago. Unavailable if the
  // other end was silent for kSilenceNanosMax. The caller calls this once a second, when Poll has
  // nothing to do.
  Status KeepAlive(int64_t now_ns);
  bool IsSilent(int64_t now_ns) const { return now_ns - heard_ns_ > kSilenceNanosMax; }
  // Pings the other end, unless kControlsMax confirmations and pings have not been completed yet.
  Status Ping(int64_t now_ns);
  // Returns whether a message of the other end has arrived.
  bool has_heard() const { return has_heard_; }
  // Tells the other end that this end closes the connection, and waits up to 0.2 s until the
  // message has arrived.
  void SayGoodbye();

 private:
  static constexpr int kEventsMax = 64;
  // The maximum number of unfinished writes of the ring; bytes that are published meanwhile share
  // the next write.
  static constexpr int kWritesMax = 4;
  static constexpr int kReadsMax = 16;
  static constexpr int kControlsMax = 32;  // confirmations and pings

  QueuePair(std::shared_ptr<VerbsDevice> device, const VerbsSettings& settings, size_t out_bytes,
            size_t in_bytes);
  Status MapRings();
  Status CreateQueues();
  void DescribeOwn();
  Status Change(ibv_qp_attr& attributes, int mask, const char* state);
  Status PostReceives(int count);
  Status PostWrite(const char* from, size_t at, size_t bytes, const Immediate* immediate);
  Status PostControl(const Immediate& immediate);
  Status Post(ibv_send_wr& request);
  Status Handle(const ibv_wc& event, int64_t now_ns, int* receives, int* reads_ended);
  Status HandleMessage(const Immediate& message);

  const std::shared_ptr<VerbsDevice> device_;
  const VerbsSettings settings_;
  const size_t out_bytes_, in_bytes_;
  char* out_ = nullptr;  // one mapping holds out_, then in_
  char* in_ = nullptr;
  std::unique_ptr<MemoryRegion> region_;
  RingPositions out_positions_, in_positions_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_qp* pair_ = nullptr;
  VerbsEndpoint own_, other_;
  bool connected_ = false;

  MessageCredits credits_;
  uint64_t sent_ = 0;       // bytes of out_ring() that were posted
  uint64_t confirmed_ = 0;  // bytes of in_ring() that were confirmed as consumed
  int writes_ = 0, reads_ = 0, controls_ = 0;
  bool has_heard_ = false;
  int64_t heard_ns_ = 0, pinged_ns_ = 0;
  int pending_ = 0;  // number of entries in events_; negative after an error
  std::array<ibv_wc, kEventsMax> events_;
};

}  // namespace penstock

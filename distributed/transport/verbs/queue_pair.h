// SPDX-License-Identifier: Apache-2.0
//
// QueuePair: one connection over RDMA: a reliable queue pair, its completion queue, and a ring of
// bytes for each direction.
//
// Flush writes the bytes that were published in out_ring() (loop/ring.h) into the other end's
// memory, by an RDMA write with an immediate. The other end's Poll makes them visible in its
// in_ring(). One message carries all bytes that are there, which under load are many. Read fetches
// large ranges from the other end's memory.
//
// Not thread-safe, but for the rings: one thread may use each end of them beside. Errors mean that
// the connection is broken. Once it is destroyed, the device touches none of its memory, nor what
// Read was given.
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
  // Without a word for so long, the other end is lost. It pings each second.
  static constexpr int64_t kSilenceNanosMax = 6'000'000'000;
  static constexpr int64_t kPingNanos = 1'000'000'000;

  // ResourceExhausted or FailedPrecondition if the device does not give what is needed. The rings'
  // lengths are powers of two, up to Immediate::kBytesMax.
  static StatusOr<std::unique_ptr<QueuePair>> Create(std::shared_ptr<VerbsDevice> device,
                                                     const VerbsSettings& settings,
                                                     size_t out_bytes, size_t in_bytes);
  QueuePair(const QueuePair&) = delete;
  ~QueuePair();

  // Returns this end's description, which the other end needs for its Connect.
  const VerbsEndpoint& own() const { return own_; }
  // Connects to the other end, which may send from then on. FailedPrecondition if the settings
  // disagree, or the device knows no way there. Blocks while the system looks for the address.
  Status Connect(const VerbsEndpoint& other, int64_t now_ns);

  RingMemory out_ring() { return {&out_positions_, out_, out_bytes_}; }
  RingMemory in_ring() { return {&in_positions_, in_, in_bytes_}; }

  // Sends what is published and not sent yet, as far as the other end has room for messages.
  Status Flush();
  // Lets the other end know what was consumed of in_ring(), if that is worth a message.
  Status Confirm();
  bool CanRead() const { return reads_ < kReadsMax; }
  // Begins to copy `bytes` (up to kReadBytesMax) from the other end's memory to `to`. Reads end in
  // the order in which they began; Poll counts them. REQUIRES CanRead().
  Status Read(char* to, uint32_t local_key, uint64_t from, uint32_t remote_key, size_t bytes);
  static constexpr size_t kReadBytesMax = size_t{1} << 20;

  // Takes note of what has happened. Returns how many reads have ended.
  StatusOr<int> Poll(int64_t now_ns);
  // True if Poll has something to do.
  bool HasEvents();
  // Readable when something happens after Arm; TakeEvents makes it unreadable.
  int fd() const { return channel_->fd; }
  void Arm();
  void TakeEvents();

  // Pings the other end if it has not heard anything for a while. Unavailable if it was silent for
  // kSilenceNanosMax. Call once a second, when Poll has nothing to do.
  Status KeepAlive(int64_t now_ns);
  bool IsSilent(int64_t now_ns) const { return now_ns - heard_ns_ > kSilenceNanosMax; }
  Status Ping(int64_t now_ns);
  bool has_heard() const { return has_heard_; }
  // Tells the other end that this one ends, and waits for up to 0.2 s until it has been told.
  void SayGoodbye();

 private:
  static constexpr int kEventsMax = 64;
  static constexpr int kWritesMax = 4;  // of the ring, under way: more are joined into one
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
  char* out_ = nullptr;  // of one mapping: out_, then in_
  char* in_ = nullptr;
  std::unique_ptr<MemoryRegion> region_;
  RingPositions out_positions_, in_positions_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_qp* pair_ = nullptr;
  VerbsEndpoint own_, other_;
  bool connected_ = false;

  MessageCredits credits_;
  uint64_t sent_ = 0;       // bytes of out_ring()
  uint64_t confirmed_ = 0;  // bytes of in_ring()
  int writes_ = 0, reads_ = 0, controls_ = 0;
  bool has_heard_ = false;
  int64_t heard_ns_ = 0, said_ns_ = 0;
  int pending_ = 0;  // of events_
  std::array<ibv_wc, kEventsMax> events_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// PeerLink: the messages of one execution of a collective: an algorithm sends tagged tensors to
// peers, and receives them. The algorithms use no other interface of the network.
//
// Thread-safe. Implementations: the network of tasks (exchange.h) and memory (testing/).
#pragma once

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock::collective {

// Identifies a message among those that one peer sends to another in an execution.
struct Tag {
  static constexpr uint32_t kPhaseMax = 3, kSegmentMax = 0xfff, kChunkMax = 0x3ffff;
  // The phase of messages that are received from kAnyPeer.
  static constexpr uint32_t kFromAny = kPhaseMax;

  uint32_t phase = 0, segment = 0, chunk = 0;
  uint32_t Number() const { return phase << 30 | segment << 18 | chunk; }
};

class PeerLink {
 public:
  using Received = absl::AnyInvocable<void(StatusOr<Tensor>) &&>;
  static constexpr int kAnyPeer = -1;

  virtual ~PeerLink() = default;
  // Return the number of this peer, and the number of peers.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Sends `value` to `peer`; never blocks. The tensor's memory must not change until all peers
  // have finished the execution.
  virtual void Send(int peer, Tag tag, Tensor value) = 0;
  // Calls `received` when the message arrives: exactly once, on any thread, possibly before Recv
  // returns. The caller has to check the type and size of the tensor.
  virtual void Recv(int peer, Tag tag, Received received) = 0;
};

}  // namespace penstock::collective

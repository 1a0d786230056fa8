// SPDX-License-Identifier: Apache-2.0
//
// Flow control of a queue pair. Each message uses up one of the receives that the other end keeps
// posted, so no end sends more messages than the other has confirmed.
//
//   Immediate       the 32 bits that come with each message
//   MessageCredits  counts one direction: of messages that were sent, and of those that arrived
//
// An end keeps `queue_depth` receives posted: kReserve for pings, half of the rest for messages,
// and half for the confirmations of the other direction. So no message waits for a receive, and the
// device never reports RNR (receiver not ready).
#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace penstock {

struct Immediate {
  enum Kind : uint32_t {
    kPublished = 0,  // `bytes` more of the ring have been written
    kConfirmed,      // `messages` have been read, and `bytes` of the ring may be used again
    kPing,
    kGoodbye,  // the sender ends in good order
  };
  static constexpr uint32_t kBytesMax = (1u << 20) - 1;
  static constexpr uint32_t kMessagesMax = (1u << 10) - 1;

  Kind kind;
  uint32_t messages = 0;
  uint32_t bytes = 0;

  // REQUIRES that both numbers are in their ranges.
  uint32_t Encode() const { return kind << 30 | messages << 20 | bytes; }
  static Immediate Decode(uint32_t bits) {
    return {static_cast<Kind>(bits >> 30), bits >> 20 & kMessagesMax, bits & kBytesMax};
  }
};

class MessageCredits {
 public:
  static constexpr uint32_t kReserve = 16;

  explicit MessageCredits(int queue_depth)
      : messages_max_((static_cast<uint32_t>(queue_depth) - kReserve) / 2) {}

  uint32_t messages_max() const { return messages_max_; }

  // The sender's side.
  bool CanSend() const { return sent_ < messages_max_; }
  void Sent() { ++sent_; }
  // DataLoss if the other end confirms more than was sent.
  Status Confirmed(uint32_t messages) {
    if (messages > sent_) {
      return DataLoss("the other end confirmed ", messages, " messages of ", sent_);
    }
    sent_ -= messages;
    return OkStatus();
  }

  // The receiver's side.
  // DataLoss if the other end sends more than it may.
  Status Received() {
    if (++received_ <= messages_max_) return OkStatus();
    return DataLoss("the other end sent more than ", messages_max_, " messages at a time");
  }
  // Returns true if a confirmation is worth a message: a quarter of the messages, or of `ring`
  // bytes, has been read.
  bool ShouldConfirm(uint64_t bytes, uint64_t ring) const {
    return received_ >= messages_max_ / 4 || bytes >= ring / 4;
  }
  // Takes all that arrived since the last call, for a confirmation.
  uint32_t TakeReceived() {
    const uint32_t messages = received_;
    received_ = 0;
    return messages;
  }

 private:
  const uint32_t messages_max_;
  uint32_t sent_ = 0;      // and not confirmed by the other end
  uint32_t received_ = 0;  // and not confirmed by this end
};

}  // namespace penstock

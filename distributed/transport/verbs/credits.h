// SPDX-License-Identifier: Apache-2.0
//
// Flow control of a queue pair. Each message consumes one of the receives that the other end keeps
// posted, so an end limits the number of messages that the other end has not confirmed.
//
//   Immediate       the 32 bits that come with each message
//   MessageCredits  counts the messages of one direction: sent ones, or received ones
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
    kPublished = 0,  // `bytes` more of the ring were written
    kConfirmed,      // `messages` were read, and `bytes` of the ring may be reused
    kPing,
    kGoodbye,  // the sender closes the connection without an error
  };
  static constexpr uint32_t kBytesMax = (1u << 20) - 1;
  static constexpr uint32_t kMessagesMax = (1u << 10) - 1;

  Kind kind;
  uint32_t messages = 0;
  uint32_t bytes = 0;

  // Packs the message into 32 bits. REQUIRES: both numbers are in their ranges.
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

  // CanSend, Sent and Confirmed are for the sender; the other functions are for the receiver.

  // Returns whether a message may be sent.
  bool CanSend() const { return sent_ < messages_max_; }
  void Sent() { ++sent_; }
  // Notes a confirmation. DataLoss if the other end confirms more than was sent.
  Status Confirmed(uint32_t messages) {
    if (messages > sent_) {
      return DataLoss("the other end confirmed ", messages, " messages of ", sent_);
    }
    sent_ -= messages;
    return OkStatus();
  }

  // Counts a message. DataLoss if the other end sends more than it may.
  Status Received() {
    if (++received_ <= messages_max_) return OkStatus();
    return DataLoss("the other end sent more than ", messages_max_, " messages at a time");
  }
  // Returns whether a confirmation should be sent now: a quarter of the messages has arrived, or
  // the `bytes` that were read are at least a quarter of the `ring` bytes of the ring.
  bool ShouldConfirm(uint64_t bytes, uint64_t ring) const {
    return received_ >= messages_max_ / 4 || bytes >= ring / 4;
  }
  // Returns the number of messages that arrived since the last call, for a confirmation.
  uint32_t TakeReceived() {
    const uint32_t messages = received_;
    received_ = 0;
    return messages;
  }

 private:
  const uint32_t messages_max_;
  uint32_t sent_ = 0;      // messages sent that the other end has not confirmed
  uint32_t received_ = 0;  // messages received that this end has not confirmed
};

}  // namespace penstock

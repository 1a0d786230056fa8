// SPDX-License-Identifier: Apache-2.0
//
// Mailbox: keeps messages of a group's executions that no algorithm has asked for yet, and
// functions that wait for messages which have not arrived.
//
// Not thread-safe: the caller calls the returned functions after releasing its locks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/check.h"
#include "core/tensor/tensor.h"
#include "distributed/collective/peer_link.h"

namespace penstock::collective {

class Mailbox {
 public:
  struct Slot {
    int peer;  // or PeerLink::kAnyPeer
    uint64_t execution;
    uint32_t tag;
    auto operator<=>(const Slot&) const = default;
  };

  // Returns the function that waits for the message, if there is one; else keeps the message.
  // Sets `*twice` if the same message is already there.
  std::optional<PeerLink::Received> Put(const Slot& slot, const Tensor& value, bool* twice) {
    const auto [found, is_new] = slots_.try_emplace(slot, value);
    if (is_new) bytes_ += static_cast<int64_t>(value.bytes());
    if (is_new) return std::nullopt;
    auto* const received = std::get_if<PeerLink::Received>(&found->second);
    *twice = received == nullptr;
    if (*twice) return std::nullopt;
    PeerLink::Received waits = std::move(*received);
    slots_.erase(found);
    return waits;
  }
  // Returns and removes the message, if it has arrived.
  std::optional<Tensor> Take(const Slot& slot) {
    const auto found = slots_.find(slot);
    if (found == slots_.end()) return std::nullopt;
    Tensor* const arrived = std::get_if<Tensor>(&found->second);
    CHECK(arrived != nullptr, "a collective waits for a message twice");
    Tensor value = std::move(*arrived);
    bytes_ -= static_cast<int64_t>(value.bytes());
    slots_.erase(found);
    return value;
  }
  bool IsAwaited(const Slot& slot) const {
    const auto found = slots_.find(slot);
    return found != slots_.end() && std::holds_alternative<PeerLink::Received>(found->second);
  }
  // Keeps `received` until the message arrives. REQUIRES that Take has returned nothing.
  void Await(const Slot& slot, PeerLink::Received received) {
    slots_.emplace(slot, std::move(received));
  }
  // Drops all messages except those of the executions `kept`. Returns the functions that
  // waited for dropped executions.
  std::vector<PeerLink::Received> DropAllBut(const std::set<uint64_t>& kept) {
    std::vector<PeerLink::Received> waited;
    for (auto it = slots_.begin(); it != slots_.end();) {
      if (kept.contains(it->first.execution)) {
        ++it;
        continue;
      }
      if (auto* const received = std::get_if<PeerLink::Received>(&it->second)) {
        waited.push_back(std::move(*received));
      } else {
        bytes_ -= static_cast<int64_t>(std::get<Tensor>(it->second).bytes());
      }
      it = slots_.erase(it);
    }
    return waited;
  }
  // Returns the peers that an execution waits for.
  std::set<int> PeersAwaitedBy(uint64_t execution) const {
    std::set<int> peers;
    for (const auto& [slot, waiting] : slots_) {
      const bool waits = std::holds_alternative<PeerLink::Received>(waiting);
      if (slot.execution == execution && waits) peers.insert(slot.peer);
    }
    return peers;
  }
  // Returns the size of the messages in bytes.
  int64_t bytes() const { return bytes_; }

 private:
  std::map<Slot, std::variant<Tensor, PeerLink::Received>> slots_;
  int64_t bytes_ = 0;
};

}  // namespace penstock::collective

// SPDX-License-Identifier: Apache-2.0
//
// MemoryNetwork: in-memory links between the peers of one execution, on one thread. Run
// delivers the messages one by one, in random order. Counts the bytes that each peer sends.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/status.h"
#include "distributed/collective/peer_link.h"

namespace penstock::collective {

class MemoryNetwork {
 public:
  MemoryNetwork(int peers, uint64_t seed) : random_(seed), sent_bytes_(peers) {
    for (int i = 0; i < peers; ++i) links_.push_back(std::make_unique<Link>(*this, i, peers));
  }
  PeerLink& link(int peer) { return *links_[peer]; }

  // Delivers messages until all have arrived.
  void Run() {
    while (!on_the_way_.empty()) {
      const size_t i = random_() % on_the_way_.size();
      std::swap(on_the_way_[i], on_the_way_.back());
      auto [slot, value] = std::move(on_the_way_.back());
      on_the_way_.pop_back();
      const auto waits = waiting_.find(slot);
      if (waits == waiting_.end()) {
        CHECK(arrived_.emplace(slot, std::move(value)).second, "a message was sent twice");
        continue;
      }
      PeerLink::Received received = std::move(waits->second);
      waiting_.erase(waits);
      std::move(received)(std::move(value));
    }
  }
  // Ends pending and future receives with the error.
  void Break(const Status& why) {
    broken_ = why;
    on_the_way_.clear();
    for (auto& [slot, received] : std::exchange(waiting_, {})) std::move(received)(why);
  }
  size_t waiting() const { return waiting_.size(); }
  // Returns the number of messages that no Recv has asked for.
  size_t left_over() const { return arrived_.size(); }
  int64_t sent_bytes(int peer) const { return sent_bytes_[peer]; }

 private:
  using Slot = std::tuple<int, int, uint32_t>;  // to, from, tag

  class Link final : public PeerLink {
   public:
    Link(MemoryNetwork& network, int rank, int size)
        : network_(network), rank_(rank), size_(size) {}
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    void Send(int peer, Tag tag, Tensor value) override {
      CHECK(peer >= 0 && peer < size_ && peer != rank_);
      if (!network_.broken_.ok()) return;
      network_.sent_bytes_[rank_] += static_cast<int64_t>(value.bytes());
      const int from = tag.phase == Tag::kFromAny ? kAnyPeer : rank_;
      network_.on_the_way_.push_back({{peer, from, tag.Number()}, std::move(value)});
    }
    void Recv(int peer, Tag tag, Received received) override {
      if (!network_.broken_.ok()) return std::move(received)(network_.broken_);
      const Slot slot(rank_, peer, tag.Number());
      auto arrived = network_.arrived_.extract(slot);
      if (!arrived.empty()) return std::move(received)(std::move(arrived.mapped()));
      CHECK(network_.waiting_.emplace(slot, std::move(received)).second);
    }

   private:
    MemoryNetwork& network_;
    const int rank_, size_;
  };

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<int64_t> sent_bytes_;
  std::vector<std::pair<Slot, Tensor>> on_the_way_;
  std::map<Slot, PeerLink::Received> waiting_;
  std::map<Slot, Tensor> arrived_;
  Status broken_;
};

}  // namespace penstock::collective

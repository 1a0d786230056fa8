// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous: where the two ends of a cut edge meet. One per step and task.
//
// Either end may come first. Send never blocks. A key is sent once and received once: a second Send
// or Recv of a key is an error; outside of loops, also after the two have met (so that a loop
// leaves nothing behind, however long it runs). After Abort(status) every pending and later call
// ends with that status; what was sent and not received is dropped. Destruction aborts.
// Thread-safe. No lock is held while a continuation runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"
#include "core/op/task_name.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The name of one tensor on its way between two devices, in one step. A value; parsed and hashed
// once, when a graph is compiled, never per step. Frame and iteration are 0 outside loops.
struct RendezvousKey {
  std::string src_device;  // full names
  uint64_t src_incarnation = 0;
  std::string dst_device;
  std::string tensor;  // unique per cut edge in its graph, "edge_12_weights:0"
  uint64_t frame = 0;
  uint64_t iteration = 0;

  auto operator<=>(const RendezvousKey&) const = default;
  uint64_t Hash() const;  // the same in every process
  // "src;incarnation;dst;tensor;frame:iteration", the form that travels: the incarnation is 16
  // hexadecimal digits, frame and iteration are decimal. Parse checks all of it, and that the
  // devices are full names; the tensor's name may hold semicolons.
  std::string ToString() const;
  static StatusOr<RendezvousKey> Parse(string_view text);
};

// A key with its hash and the task that receives, found once, when a graph is compiled. Copies
// share them, and so do those for the iterations of a loop, which are made in each iteration and
// cost a few multiplications.
class HashedKey {
 public:
  explicit HashedKey(RendezvousKey key);
  // The same edge in one iteration of one run of a loop.
  HashedKey In(uint64_t frame, uint64_t iteration) const;
  // The edge, as outside of loops.
  const RendezvousKey& key() const { return edge_->key; }
  // The task of dst_device; none if that is not a full name.
  const std::optional<TaskName>& consumer() const { return edge_->consumer; }
  uint64_t frame() const { return frame_; }
  uint64_t iteration() const { return iteration_; }
  uint64_t hash() const { return hash_; }
  bool operator==(const HashedKey& other) const {
    return hash_ == other.hash_ && frame_ == other.frame_ && iteration_ == other.iteration_ &&
           (edge_ == other.edge_ || edge_->key == other.edge_->key);
  }
  std::string ToString() const;  // as RendezvousKey's

 private:
  struct Edge {
    RendezvousKey key;  // as outside of loops
    std::optional<TaskName> consumer;
  };
  static Edge EdgeOf(RendezvousKey key);
  HashedKey(std::shared_ptr<const Edge> edge, uint64_t edge_hash, uint64_t frame,
            uint64_t iteration);

  std::shared_ptr<const Edge> edge_;
  uint64_t edge_hash_;
  uint64_t frame_;
  uint64_t iteration_;
  uint64_t hash_;
};

class Rendezvous {
 public:
  // `is_dead`: the value of an untaken branch.
  using Received = absl::AnyInvocable<void(Status, Tensor, bool is_dead) &&>;

  virtual ~Rendezvous() = default;
  virtual Status Send(const HashedKey& key, Tensor value, bool is_dead) = 0;
  // `received` is called exactly once, possibly before Recv returns, on any thread.
  virtual void Recv(const HashedKey& key, Received received) = 0;
  // The first call wins. `why` must not be OK.
  virtual void Abort(const Status& why) = 0;
};

// Meets within one process.
std::unique_ptr<Rendezvous> NewLocalRendezvous();

}  // namespace penstock

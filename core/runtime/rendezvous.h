// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous: passes tensors from Send to Recv, the two ends of an edge that the partitioner has
// cut. One per step and task.
//
// Either call may come first. Send never blocks. A key is sent once and received once: a second
// Send or Recv of a key is an error. For keys in loops this error is detected only until the first
// Send and Recv have met, so that a long loop leaves no data behind. After Abort(status) every
// pending and later call ends with that status, and tensors that were sent and not received are
// dropped. The destructor aborts. Thread-safe. No lock is held while a continuation runs.
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

// The name of one tensor that is sent between two devices in one step. Keys are parsed and hashed
// when a graph is compiled, not in each step. Frame and iteration are 0 outside of loops.
struct RendezvousKey {
  std::string src_device;  // full name
  uint64_t src_incarnation = 0;
  std::string dst_device;  // full name
  std::string tensor;      // unique among the cut edges of its graph, "edge_12_weights:0"
  uint64_t frame = 0;
  uint64_t iteration = 0;

  auto operator<=>(const RendezvousKey&) const = default;
  uint64_t Hash() const;  // the same in every process
  // "src;incarnation;dst;tensor;frame:iteration", the form in messages: the incarnation is 16
  // hexadecimal digits, frame and iteration are decimal. Parse checks all components, and that the
  // devices are full names; the tensor's name may contain semicolons.
  std::string ToString() const;
  static StatusOr<RendezvousKey> Parse(string_view text);
};

// A key with its hash and its consumer task, which are computed once, when a graph is compiled.
// Copies share the edge's data. In() makes the key of one iteration, which shares the edge's data,
// too, for the cost of a few multiplications.
class HashedKey {
 public:
  explicit HashedKey(RendezvousKey key);
  // Returns the key of the same edge in one iteration of one run of a loop.
  HashedKey In(uint64_t frame, uint64_t iteration) const;
  // The key of the edge, with frame and iteration 0.
  const RendezvousKey& key() const { return edge_->key; }
  // The task of dst_device; nullopt if that is not a full name.
  const std::optional<TaskName>& consumer() const { return edge_->consumer; }
  uint64_t frame() const { return frame_; }
  uint64_t iteration() const { return iteration_; }
  uint64_t hash() const { return hash_; }
  bool operator==(const HashedKey& other) const {
    return hash_ == other.hash_ && frame_ == other.frame_ && iteration_ == other.iteration_ &&
           (edge_ == other.edge_ || edge_->key == other.edge_->key);
  }
  std::string ToString() const;  // as RendezvousKey::ToString

 private:
  struct Edge {
    RendezvousKey key;  // with frame and iteration 0
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
  // If `is_dead`, the value is a dead value, and the tensor has no meaning.
  using Received = absl::AnyInvocable<void(Status, Tensor, bool is_dead) &&>;

  virtual ~Rendezvous() = default;
  virtual Status Send(const HashedKey& key, Tensor value, bool is_dead) = 0;
  // `received` is called exactly once, possibly before Recv returns, on any thread.
  virtual void Recv(const HashedKey& key, Received received) = 0;
  // Ends all pending and later calls with the status `why`, which must not be OK. Later calls of
  // Abort have no effect.
  virtual void Abort(const Status& why) = 0;
};

// Returns a rendezvous within one process.
std::unique_ptr<Rendezvous> NewLocalRendezvous();

}  // namespace penstock

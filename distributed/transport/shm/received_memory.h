// SPDX-License-Identifier: Apache-2.0
//
// ReceivedMemory: an allocator for received tensors. A tensor stays where the producer has written
// it, in the arena of a connection, as long as the consumer uses it, even after the connection has
// ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/tensor/allocator.h"
#include "distributed/transport/shm/segment.h"
#include "distributed/transport/tensor_encoding.h"

namespace penstock {

class ReceivedMemory final : public Allocator, public std::enable_shared_from_this<ReceivedMemory> {
 public:
  // `freed` is called, on any thread and without locks, with the offset of each block that the
  // producer may use again.
  ReceivedMemory(std::shared_ptr<SharedSegment> segment, std::function<void(uint64_t)> freed)
      : segment_(std::move(segment)), freed_(std::move(freed)) {}

  // Returns the bytes of a block. DataLoss unless the block lies in the arena.
  StatusOr<const char*> Find(uint64_t offset, uint64_t bytes) const;
  void Free(uint64_t offset) { freed_(offset); }

  // Begins a tensor whose bytes are in the block at `offset`. REQUIRES: Find has returned the
  // block. If the consumer wants the tensor in CPU memory, the bytes stay in place, and `*in_place`
  // is set: the tensor is then complete, and frees the block when it is destroyed. Otherwise the
  // caller copies the bytes and frees the block.
  StatusOr<IncomingTensor> Begin(int64_t step_id, const HashedKey& key, const TensorHeader& header,
                                 uint64_t offset, Landing& landing, bool* in_place);

  // Implements Allocator:
  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* pointer, size_t bytes) override;
  AllocatorStats stats() const override;

 private:
  class InPlace;

  const std::string name_ = "received";
  const std::shared_ptr<SharedSegment> segment_;
  const std::function<void(uint64_t)> freed_;
  char* next_ = nullptr;  // the result of the next Allocate; set by Begin

  mutable Mutex mu_;
  int64_t blocks_ ABSL_GUARDED_BY(mu_) = 0;  // blocks in use
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Keeps this object alive while blocks are in use.
  std::shared_ptr<ReceivedMemory> self_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

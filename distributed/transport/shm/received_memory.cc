// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/received_memory.h"

#include <utility>

#include "core/base/check.h"

namespace penstock {

// A Landing that asks the consumer for the tensor's allocator. If that is the CPU allocator, the
// tensor stays in the arena.
class ReceivedMemory::InPlace final : public Landing {
 public:
  InPlace(ReceivedMemory& memory, Landing& landing, bool* in_place)
      : memory_(memory), landing_(landing), in_place_(in_place) {}

  Allocator& AllocatorFor(int64_t step_id, const HashedKey& key, DType dtype,
                          const Shape& shape) override {
    Allocator& wanted = landing_.AllocatorFor(step_id, key, dtype, shape);
    *in_place_ = &wanted == &CpuAllocator();
    return *in_place_ ? memory_ : wanted;
  }

 private:
  ReceivedMemory& memory_;
  Landing& landing_;
  bool* const in_place_;
};

StatusOr<const char*> ReceivedMemory::Find(uint64_t offset, uint64_t bytes) const {
  if (offset % kAlignment != 0 || offset > SharedSegment::kArenaBytes ||
      bytes > SharedSegment::kArenaBytes - offset) {
    return DataLoss("a tensor of ", bytes, " bytes at byte ", offset, " of a shared arena of ",
                    SharedSegment::kArenaBytes);
  }
  return segment_->arena() + offset;
}

StatusOr<IncomingTensor> ReceivedMemory::Begin(int64_t step_id, const HashedKey& key,
                                               const TensorHeader& header, uint64_t offset,
                                               Landing& landing, bool* in_place) {
  *in_place = false;
  next_ = segment_->arena() + offset;
  InPlace choice(*this, landing, in_place);
  StatusOr<IncomingTensor> tensor = IncomingTensor::Begin(step_id, key, header, choice);
  if (tensor.ok() && *in_place) {
    const char* const place = tensor->Next(tensor->missing());
    CHECK(place == next_, "a tensor in shared memory is not where it was put");
  }
  next_ = nullptr;
  return tensor;
}

void* ReceivedMemory::Allocate(size_t bytes) {
  MutexLock lock(mu_);
  if (blocks_++ == 0) self_ = shared_from_this();
  bytes_ += static_cast<int64_t>(bytes);
  return next_;
}

void ReceivedMemory::Deallocate(void* pointer, size_t bytes) {
  freed_(static_cast<uint64_t>(static_cast<char*>(pointer) - segment_->arena()));
  std::shared_ptr<ReceivedMemory> last;  // destroys this object after the lock is released
  MutexLock lock(mu_);
  bytes_ -= static_cast<int64_t>(bytes);
  if (--blocks_ == 0) last = std::move(self_);
}

AllocatorStats ReceivedMemory::stats() const {
  MutexLock lock(mu_);
  return {.bytes_in_use = bytes_, .bytes_reserved = bytes_};
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/allocation_record.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "core/base/mutex.h"

namespace penstock {

// Never destroyed: tensors refer to their allocator until they are freed, possibly in a later step.
class RecordingAllocator final : public Allocator {
 public:
  // Returns the recording allocator of `memory`.
  static Allocator* Of(Allocator* memory) {
    static Mutex& mu = *new Mutex;
    static auto& all = *new std::map<Allocator*, std::unique_ptr<RecordingAllocator>>;
    MutexLock lock(mu);
    std::unique_ptr<RecordingAllocator>& found = all[memory];
    if (found == nullptr) found = std::make_unique<RecordingAllocator>(*memory);
    return found.get();
  }

  explicit RecordingAllocator(Allocator& memory) : memory_(memory) {}

  const std::string& name() const override { return memory_.name(); }
  AllocatorStats stats() const override { return memory_.stats(); }
  bool host_accessible() const override { return memory_.host_accessible(); }
  void* Allocate(size_t bytes) override {
    void* const pointer = memory_.Allocate(bytes);
    AllocationRecord* const record = AllocationRecord::current_;
    if (pointer != nullptr && record != nullptr) record->NoteAllocated(*this, pointer, bytes);
    return pointer;
  }
  void Deallocate(void* pointer, size_t bytes) override {
    AllocationRecord* const record = AllocationRecord::current_;
    if (record != nullptr) record->NoteFreed(pointer);
    memory_.Deallocate(pointer, bytes);
  }
  Status Copy(const void* from, void* to, size_t bytes) override {
    return memory_.Copy(from, to, bytes);
  }

 private:
  Allocator& memory_;
};

constinit thread_local AllocationRecord* AllocationRecord::current_ = nullptr;

AllocationRecord::AllocationRecord(KernelContext::Params* params)
    : params_(params),
      allocators_(params->allocator, params->host_allocator),
      outer_(std::exchange(current_, this)) {
  params_->allocator = RecordingAllocator::Of(allocators_.first);
  params_->host_allocator = RecordingAllocator::Of(allocators_.second);
}

AllocationRecord::~AllocationRecord() {
  std::tie(params_->allocator, params_->host_allocator) = allocators_;
  current_ = outer_;
}

void AllocationRecord::NoteAllocated(const Allocator& allocator, void* pointer, size_t bytes) {
  auto used = std::find_if(used_.begin(), used_.end(),
                           [&](const UsedMemory& u) { return u.allocator == &allocator; });
  if (used == used_.end()) used = used_.insert(used, {.allocator = &allocator});
  used->total_bytes += static_cast<int64_t>(bytes);
  used->live_bytes += static_cast<int64_t>(bytes);
  used->peak_bytes = std::max(used->peak_bytes, used->live_bytes);
  used->blocks.push_back({pointer, bytes});
}

void AllocationRecord::NoteFreed(const void* pointer) {
  for (UsedMemory& used : used_) {
    const auto block = std::find_if(used.blocks.begin(), used.blocks.end(),
                                    [&](const Block& b) { return b.pointer == pointer; });
    if (block == used.blocks.end()) continue;
    used.live_bytes -= static_cast<int64_t>(block->bytes);
    used.blocks.erase(block);
    return;
  }
}

std::vector<NodeStats::Memory> AllocationRecord::memory() const {
  std::vector<NodeStats::Memory> memory;
  for (const UsedMemory& used : used_) {
    memory.push_back({.allocator = used.allocator->name(),
                      .total_bytes = used.total_bytes,
                      .peak_bytes = used.peak_bytes,
                      .live_bytes = used.live_bytes});
  }
  return memory;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/registered_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "core/tensor/huge_pages.h"
#include "core/tensor/memory_account.h"

namespace penstock {

void* RegisteredMemory::Source::Map(size_t bytes) {
  void* const memory = HugePages().Map(bytes);
  if (memory == nullptr) return nullptr;
  // Keeps the pages out of forked children: otherwise, after a fork, this process could get copies
  // of the pages that the device writes to.
  (void)madvise(memory, bytes, MADV_DONTFORK);
  StatusOr<Registration> registration = register_(memory, bytes);
  MutexLock lock(mu_);
  error_ = registration.status();
  if (!registration.ok()) {
    HugePages().Unmap(memory, bytes);
    return nullptr;
  }
  regions_.emplace(static_cast<const char*>(memory), Region{bytes, *std::move(registration)});
  return memory;
}

void RegisteredMemory::Source::Unmap(void* region, size_t bytes) {
  {
    MutexLock lock(mu_);
    regions_.erase(static_cast<const char*>(region));  // unregister before the addresses are reused
  }
  HugePages().Unmap(region, bytes);
}

std::optional<MemoryKeys> RegisteredMemory::Source::Find(const char* begin, size_t bytes) {
  MutexLock lock(mu_);
  auto region = regions_.upper_bound(begin);
  if (region == regions_.begin()) return std::nullopt;
  --region;
  const size_t offset = static_cast<size_t>(begin - region->first);
  if (offset > region->second.bytes || bytes > region->second.bytes - offset) return std::nullopt;
  return region->second.registration.keys;
}

Status RegisteredMemory::Source::last_error() {
  MutexLock lock(mu_);
  return error_;
}

RegisteredMemory::RegisteredMemory(Register register_memory)
    : source_(std::move(register_memory)),
      arena_(source_, {.region_bytes = kRegionBytes, .cached_bytes_max = kCachedBytesMax}) {}

std::shared_ptr<RegisteredMemory> RegisteredMemory::Of(std::shared_ptr<VerbsDevice> device) {
  return std::make_shared<RegisteredMemory>(
      [device = std::move(device)](void* memory, size_t bytes) -> StatusOr<Registration> {
        ASSIGN_OR_RETURN(
            std::unique_ptr<MemoryRegion> region,
            device->Register(memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
        const MemoryKeys keys{region->local_key(), region->remote_key()};
        return Registration{keys, std::shared_ptr<MemoryRegion>(std::move(region))};
      });
}

Status RegisteredMemory::RegisterFirstRegion() {
  void* const block = arena_.Allocate(1);
  if (block != nullptr) {
    arena_.Deallocate(block);
    return OkStatus();
  }
  const Status why = source_.last_error();
  return why.ok() ? ResourceExhausted("no memory to register") : why;
}

std::optional<MemoryKeys> RegisteredMemory::Find(const void* begin, size_t bytes) {
  return source_.Find(static_cast<const char*>(begin), bytes);
}

void* RegisteredMemory::Allocate(size_t bytes) {
  const int64_t charged = static_cast<int64_t>(bytes);
  if (charged < 0 || !MemoryAccount::Task().Charge(charged)) return nullptr;
  void* const block = arena_.Allocate(std::max<size_t>(bytes, 1));
  if (block == nullptr) {
    MemoryAccount::Task().Return(charged);
    const Status why = source_.last_error();
    SetRefusal(why.ok() ? ": the system has no more" : StrCat(": ", why.message()));
    return nullptr;
  }
  MutexLock lock(mu_);
  if (blocks_++ == 0) self_ = shared_from_this();
  bytes_ += charged;
  return block;
}

void RegisteredMemory::Deallocate(void* pointer, size_t bytes) {
  arena_.Deallocate(pointer);
  MemoryAccount::Task().Return(static_cast<int64_t>(bytes));
  std::shared_ptr<RegisteredMemory> last;  // destroys this object after the lock is released
  MutexLock lock(mu_);
  bytes_ -= static_cast<int64_t>(bytes);
  if (--blocks_ == 0) last = std::move(self_);
}

AllocatorStats RegisteredMemory::stats() const {
  const Arena::Stats arena = arena_.stats();
  MutexLock lock(mu_);
  return {.bytes_in_use = bytes_, .bytes_reserved = arena.bytes_mapped};
}

}  // namespace penstock

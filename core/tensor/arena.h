// SPDX-License-Identifier: Apache-2.0
//
// Arena: allocates blocks from large regions of memory. It joins neighbouring free blocks, so that
// memory freed as blocks of one size can serve requests of another. For blocks of a few KiB or
// more, in any kind of memory (host, device, network card): an arena never reads or writes blocks.
//
// A request takes the first block that fits among the first few in the free list of its size class,
// which begins with the block freed last, probably still in the CPU's cache. If none fits, the
// request takes a block of the next larger class that has a free one. This takes constant time.
// Thread-safe. Allocate returns null if the source has no memory. When more than cached_bytes_max
// is free, the arena returns all free memory except the block freed last to the source, and maps
// memory again when a request needs it. Invariants: (1) the blocks of a region cover it without
// gaps; (2) no two neighbours are both free.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"

namespace penstock {

// Provides regions. The arena calls it while it holds its lock.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* Map(size_t bytes) = 0;  // null: no memory is left
  virtual void Unmap(void* region, size_t bytes) = 0;
  // Returns the physical memory of a range of a region to the system and keeps the addresses.
  // Returns false if the source cannot do that; then only whole regions are returned.
  virtual bool Discard(void* /*part*/, size_t /*bytes*/) { return false; }
};

class Arena {
 public:
  struct Options {
    size_t granule = 4096;              // block sizes are multiples of this power of two
    size_t region_bytes = 64ull << 20;  // minimum size of a region; a power of two
    size_t cached_bytes_max = SIZE_MAX;
    size_t bytes_limit = 0;  // limit for all regions together; 0: no limit
  };
  struct Stats {
    int64_t bytes_mapped = 0;  // size of all regions
    int64_t bytes_in_use = 0;  // allocated and not freed
    int64_t bytes_cached = 0;  // free, but probably backed by physical memory
  };

  Arena(MemorySource& source, const Options& options);
  ~Arena();  // returns all regions; REQUIRES: nothing is in use
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Allocates a block and stores `owner` with it. If the memory in use and the cached memory
  // together exceed `physical_max`, returns cached memory to the source. The caller must ensure
  // that the memory in use alone stays below `physical_max`.
  void* Allocate(size_t bytes, void* owner = nullptr, size_t physical_max = SIZE_MAX)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Frees the block and returns its owner.
  void* Deallocate(void* pointer) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns all free memory to the source, even if it is less than cached_bytes_max.
  void ReturnFree() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the size of the block that Allocate uses for `bytes`.
  size_t RoundUp(size_t bytes) const;
  Stats stats() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Block {
    char* address;
    size_t bytes;
    size_t touched;                 // if free: bytes that may have physical memory
    Block *before, *after;          // neighbours in the region, or null
    Block *bin_before, *bin_after;  // neighbours in the free list of the size class
    bool free;
    void* owner;  // if in use: as passed to Allocate
  };
  static constexpr int kBinsPerDoubling = 8;
  static constexpr int kNumBins = 64 * kBinsPerDoubling;

  static int BinOf(size_t bytes);
  void AddFree(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveFree(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Block* FindFree(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Block* MapRegion(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Shrinks a block that is in no bin to `bytes`, and frees the rest.
  void Split(Block* block, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Block* JoinNeighbours(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the memory of a block that is in no bin back to the source. Returns true if the block was
  // a complete region, and no longer exists.
  bool Release(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Releases all free blocks.
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Block* NewBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  MemorySource& source_;
  const Options options_;
  mutable Mutex mu_;
  Stats stats_ ABSL_GUARDED_BY(mu_);
  size_t trim_at_ ABSL_GUARDED_BY(mu_);  // when more bytes are cached, Trim is called
  std::array<Block*, kNumBins> bins_ ABSL_GUARDED_BY(mu_){};
  std::array<uint64_t, kNumBins / 64> nonempty_ ABSL_GUARDED_BY(mu_){};  // one bit per bin
  absl::flat_hash_map<void*, Block*> in_use_ ABSL_GUARDED_BY(mu_);
  std::deque<Block> blocks_
      ABSL_GUARDED_BY(mu_);  // never shrinks; blocks not in use are in spare_blocks_
  Block* spare_blocks_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Arena: hands out pieces of large regions of memory and takes them back, joining free neighbours,
// so that blocks of one size serve requests of another. For blocks from a few KiB up, in any kind
// of memory (of the host, a device or a network card): it never reads or writes the blocks.
//
// A request takes the first block that fits from the free list of its size class: the block freed
// last, which is probably in the cache. If none fits, it takes a block of the next larger class
// that has one. This takes constant time. Thread-safe. Allocate returns null if the source has no
// memory. When more than cached_bytes_max is free, all free memory except the block freed last
// returns to the source. If the next steps still need that memory, the arena maps it again.
// Invariants: (1) the blocks of a region cover it without gaps; (2) no two neighbours are both
// free.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"

namespace penstock {

// The source of regions. Called under the arena's lock.
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
    size_t granule = 4096;              // block sizes are multiples of it; a power of two
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

  // `owner` is stored with the block. Keeps the sum of used and cached memory below `physical_max`,
  // by returning cached memory to the source. The caller must ensure that the memory in use alone
  // stays below it.
  void* Allocate(size_t bytes, void* owner = nullptr, size_t physical_max = SIZE_MAX)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Frees the block and returns its owner.
  void* Deallocate(void* pointer) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives all free memory back to the source, independently of cached_bytes_max.
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
    Block *bin_before, *bin_after;  // in the list of free blocks of the class
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
  // Returns the memory of a block that is in no bin to the source. Returns true if the block is
  // gone with its region.
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
      ABSL_GUARDED_BY(mu_);  // the vector grows to the largest number in use at once
  Block* spare_blocks_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace penstock

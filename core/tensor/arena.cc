// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/arena.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"

namespace penstock {
namespace {

// How many free blocks of its own size class a request tries before it takes one of a larger class.
constexpr int kFitTries = 8;

}  // namespace

Arena::Arena(MemorySource& source, const Options& options)
    : source_(source), options_(options), trim_at_(options.cached_bytes_max) {
  CHECK(std::has_single_bit(options.granule) && std::has_single_bit(options.region_bytes) &&
        options.region_bytes >= options.granule);
}

Arena::~Arena() {
  CHECK(in_use_.empty(), in_use_.size(), " blocks are in use");
  for (const Block* block : bins_) {
    // Nothing is in use and free neighbours are joined, so every free block is a complete region.
    for (; block != nullptr; block = block->bin_after) source_.Unmap(block->address, block->bytes);
  }
}

size_t Arena::RoundUp(size_t bytes) const {
  return std::max(bytes + options_.granule - 1, options_.granule) & ~(options_.granule - 1);
}

int Arena::BinOf(size_t bytes) {
  const int log2 = std::bit_width(bytes) - 1;
  if (log2 < 3) return static_cast<int>(bytes);
  const int eighth = static_cast<int>(bytes >> (log2 - 3)) - kBinsPerDoubling;
  return log2 * kBinsPerDoubling + eighth;
}

void Arena::AddFree(Block* block) {
  const int bin = BinOf(block->bytes);
  block->free = true;
  block->bin_before = nullptr;
  block->bin_after = bins_[bin];
  if (block->bin_after != nullptr) block->bin_after->bin_before = block;
  bins_[bin] = block;
  nonempty_[bin / 64] |= uint64_t{1} << bin % 64;
  stats_.bytes_cached += block->touched;
}

void Arena::RemoveFree(Block* block) {
  const int bin = BinOf(block->bytes);
  block->free = false;
  (block->bin_before != nullptr ? block->bin_before->bin_after : bins_[bin]) = block->bin_after;
  if (block->bin_after != nullptr) block->bin_after->bin_before = block->bin_before;
  if (bins_[bin] == nullptr) nonempty_[bin / 64] &= ~(uint64_t{1} << bin % 64);
  stats_.bytes_cached -= block->touched;
}

Arena::Block* Arena::FindFree(size_t bytes) {
  const int own = BinOf(bytes);
  Block* block = bins_[own];
  for (int i = 0; i < kFitTries && block != nullptr; ++i, block = block->bin_after) {
    if (block->bytes >= bytes) return block;
  }
  for (int word = (own + 1) / 64, first = (own + 1) % 64; word < kNumBins / 64; ++word, first = 0) {
    const uint64_t candidates = nonempty_[word] >> first << first;
    if (candidates != 0) return bins_[word * 64 + std::countr_zero(candidates)];
  }
  return nullptr;
}

Arena::Block* Arena::NewBlock() {
  if (spare_blocks_ == nullptr) return &blocks_.emplace_back();
  return std::exchange(spare_blocks_, spare_blocks_->bin_after);
}

Arena::Block* Arena::MapRegion(size_t bytes) {
  // Large requests are rounded up to a 32nd of a region: 2 MiB, a huge page, for regions of 64 MiB.
  const size_t step = bytes > options_.region_bytes
                          ? std::max(options_.region_bytes / 32, options_.granule)
                          : options_.region_bytes;
  size_t region = (bytes + step - 1) & ~(step - 1);
  const size_t limit = options_.bytes_limit == 0 ? SIZE_MAX : options_.bytes_limit;
  const size_t left = limit - std::min<size_t>(limit, stats_.bytes_mapped);
  if (region < bytes || region > left) region = bytes;  // at least the requested size
  if (region > left) return nullptr;
  void* address = source_.Map(region);
  if (address == nullptr && region > bytes) address = source_.Map(region = bytes);
  if (address == nullptr) return nullptr;
  stats_.bytes_mapped += region;
  Block* block = NewBlock();
  *block = Block{.address = static_cast<char*>(address), .bytes = region};
  return block;
}

void Arena::Split(Block* block, size_t bytes) {
  if (block->bytes == bytes) return;
  Block* rest = NewBlock();
  *rest = Block{.address = block->address + bytes,
                .bytes = block->bytes - bytes,
                // Blocks are cut from the front, so the bytes that have been touched come first.
                .touched = block->touched - std::min(block->touched, bytes),
                .before = block,
                .after = block->after};
  if (rest->after != nullptr) rest->after->before = rest;
  block->after = rest;
  block->bytes = bytes;
  AddFree(rest);
}

void* Arena::Allocate(size_t bytes, void* owner, size_t physical_max) {
  const size_t rounded = RoundUp(bytes);
  if (rounded < bytes) return nullptr;
  MutexLock lock(mu_);
  Block* block = FindFree(rounded);
  if (block != nullptr) {
    RemoveFree(block);
  } else {
    block = MapRegion(rounded);
    if (block == nullptr) {
      Trim();  // the source may have memory again after free regions return to it
      block = MapRegion(rounded);
    }
    if (block == nullptr) return nullptr;
  }
  Split(block, rounded);
  block->owner = owner;
  stats_.bytes_in_use += rounded;
  if (static_cast<size_t>(stats_.bytes_in_use + stats_.bytes_cached) > physical_max) Trim();
  in_use_.emplace(block->address, block);
  return block->address;
}

Arena::Block* Arena::JoinNeighbours(Block* block) {
  const auto absorb = [this](Block* first, Block* second) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    first->bytes += second->bytes;
    first->touched += second->touched;
    first->after = second->after;
    if (first->after != nullptr) first->after->before = first;
    second->bin_after = std::exchange(spare_blocks_, second);
    return first;
  };
  if (block->after != nullptr && block->after->free) {
    RemoveFree(block->after);
    absorb(block, block->after);
  }
  if (block->before != nullptr && block->before->free) {
    RemoveFree(block->before);
    block = absorb(block->before, block);
  }
  return block;
}

bool Arena::Release(Block* block) {
  if (block->before == nullptr && block->after == nullptr) {
    source_.Unmap(block->address, block->bytes);
    stats_.bytes_mapped -= block->bytes;
    block->bin_after = std::exchange(spare_blocks_, block);
    return true;
  }
  if (source_.Discard(block->address, block->bytes)) block->touched = 0;
  return false;
}

void Arena::Trim() {
  for (int bin = 0; bin < kNumBins; ++bin) {
    for (Block *block = bins_[bin], *next; block != nullptr; block = next) {
      next = block->bin_after;
      RemoveFree(block);
      if (!Release(block)) AddFree(block);
    }
  }
  // The source may be unable to take some free blocks back. These must not cause a Trim in every
  // later call.
  trim_at_ = stats_.bytes_cached + options_.cached_bytes_max;
  if (trim_at_ < options_.cached_bytes_max) trim_at_ = SIZE_MAX;
}

void Arena::ReturnFree() {
  MutexLock lock(mu_);
  Trim();
}

void* Arena::Deallocate(void* pointer) {
  MutexLock lock(mu_);
  const auto it = in_use_.find(pointer);
  CHECK(it != in_use_.end(), "freed memory that is not in use");
  Block* block = it->second;
  in_use_.erase(it);
  stats_.bytes_in_use -= block->bytes;
  void* const owner = block->owner;
  block->touched = block->bytes;
  block = JoinNeighbours(block);
  if (stats_.bytes_cached + block->touched > trim_at_) Trim();
  if (block->touched > options_.cached_bytes_max && Release(block)) return owner;
  AddFree(block);
  return owner;
}

Arena::Stats Arena::stats() const {
  MutexLock lock(mu_);
  return stats_;
}

}  // namespace penstock

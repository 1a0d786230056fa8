// SPDX-License-Identifier: Apache-2.0
//
// KeyIndex: a hash table from 64-bit keys to row numbers, with open addressing, linear probing and
// 16 bytes per entry. Every 64-bit number is a valid key. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Mixes all bits of a key. Different bits of the hash select the part, the shard and the entry of
// the index.
inline uint64_t HashKey(int64_t key) {
  auto h = static_cast<uint64_t>(key) + 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
  return h ^ (h >> 31);
}

class KeyIndex {
 public:
  static constexpr int32_t kNone = -1;

  KeyIndex() = default;
  KeyIndex(const KeyIndex&) = delete;  // an empty index points to its own member
  KeyIndex& operator=(const KeyIndex&) = delete;

  // Prefetches the entry that Find reads first for a key with this hash.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(entries_ + (hash & mask_)); }
  // Returns the row of `key`, or kNone. Here and below, `hash` is HashKey(key).
  int32_t Find(int64_t key, uint64_t hash) const {
    for (uint64_t at = hash & mask_; entries_[at].row != kNone; at = (at + 1) & mask_) {
      if (entries_[at].key == key) return entries_[at].row;
    }
    return kNone;
  }

  // Makes room for `count` keys in total. ResourceExhausted, with nothing changed, if there is no
  // memory.
  Status Reserve(Allocator& allocator, int64_t count);
  // Adds a key. REQUIRES: the index does not have the key, and has room for it.
  void Insert(int64_t key, uint64_t hash, int32_t row);
  // Changes the row of a key. REQUIRES: the index has the key.
  void Set(int64_t key, uint64_t hash, int32_t row) {
    uint64_t at = hash & mask_;
    while (entries_[at].key != key || entries_[at].row == kNone) at = (at + 1) & mask_;
    entries_[at].row = row;
  }
  // Removes a key. REQUIRES: the index has the key.
  void Erase(int64_t key, uint64_t hash);
  // Removes all keys, and frees the memory.
  void Clear();

  int64_t size() const { return size_; }

 private:
  struct Entry {
    int64_t key;
    int32_t row;  // kNone if the entry is free
    int32_t unused;
  };

  Entry empty_ = {0, kNone, 0};  // the only entry of an index without memory
  Entry* entries_ = &empty_;
  uint64_t mask_ = 0;
  int64_t size_ = 0;
  Tensor memory_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// KeyIndex: from 64-bit keys to row numbers: open addressing with linear probing, 16 bytes an
// entry. Every 64-bit number is a key. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Mixes all bits of a key. The shards of a table, its parts and the index take different bits.
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
  KeyIndex(const KeyIndex&) = delete;  // an empty one points into itself
  KeyIndex& operator=(const KeyIndex&) = delete;

  // Has the cache fetch what Find(key of `hash`) reads first.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(entries_ + (hash & mask_)); }
  // Returns the row of `key`, or kNone. `hash` is HashKey(key), here and below.
  int32_t Find(int64_t key, uint64_t hash) const {
    for (uint64_t at = hash & mask_; entries_[at].row != kNone; at = (at + 1) & mask_) {
      if (entries_[at].key == key) return entries_[at].row;
    }
    return kNone;
  }

  // Makes room for `count` keys in all. ResourceExhausted where there is no memory; nothing has
  // changed then.
  Status Reserve(Allocator& allocator, int64_t count);
  // REQUIRES that the key is not there, and room for it.
  void Insert(int64_t key, uint64_t hash, int32_t row);
  // REQUIRES that the key is there.
  void Erase(int64_t key, uint64_t hash);
  // Forgets all keys, and gives the memory back.
  void Clear();

  int64_t size() const { return size_; }

 private:
  struct Entry {
    int64_t key;
    int32_t row;  // kNone: free
    int32_t unused;
  };

  Entry empty_ = {0, kNone, 0};  // what an index without memory looks at
  Entry* entries_ = &empty_;
  uint64_t mask_ = 0;
  int64_t size_ = 0;
  Tensor memory_;
};

}  // namespace penstock

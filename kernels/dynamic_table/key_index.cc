// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/key_index.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr int64_t kEntriesMin = 64;

// Returns the maximum number of keys in an index of `entries` entries: at most three of four
// entries are used. At this load a search for a key that exists reads 2.5 entries on average, and a
// search for a key that does not exist 8.5.
int64_t KeyCapacity(int64_t entries) { return entries / 4 * 3; }

}  // namespace

Status KeyIndex::Reserve(Allocator& allocator, int64_t count) {
  const int64_t now = memory_.valid() ? static_cast<int64_t>(mask_) + 1 : 0;
  if (count <= KeyCapacity(now)) return OkStatus();
  int64_t entries = std::max(now, kEntriesMin);
  while (KeyCapacity(entries) < count) entries *= 2;
  const auto words = static_cast<int64_t>(sizeof(Entry) / sizeof(int64_t));
  ASSIGN_OR_RETURN(Tensor memory, Tensor::Make(allocator, DType::kInt64, {entries * words}));
  auto* const to = static_cast<Entry*>(memory.mutable_raw_data());
  std::fill_n(to, entries, empty_);
  const Entry* const from = entries_;
  entries_ = to;
  mask_ = static_cast<uint64_t>(entries) - 1;
  size_ = 0;
  for (int64_t i = 0; i < now; ++i) {
    if (from[i].row != kNone) Insert(from[i].key, HashKey(from[i].key), from[i].row);
  }
  memory_ = std::move(memory);
  return OkStatus();
}

void KeyIndex::Insert(int64_t key, uint64_t hash, int32_t row) {
  uint64_t at = hash & mask_;
  while (entries_[at].row != kNone) at = (at + 1) & mask_;
  entries_[at] = {key, row, 0};
  ++size_;
}

void KeyIndex::Erase(int64_t key, uint64_t hash) {
  uint64_t hole = hash & mask_;
  while (entries_[hole].key != key || entries_[hole].row == kNone) hole = (hole + 1) & mask_;
  // Moves later entries into the hole. Skips an entry if the hole lies before the place where the
  // search for its key begins.
  for (uint64_t at = (hole + 1) & mask_; entries_[at].row != kNone; at = (at + 1) & mask_) {
    const uint64_t home = HashKey(entries_[at].key) & mask_;
    if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole] = empty_;
  --size_;
}

void KeyIndex::Clear() {
  entries_ = &empty_;
  mask_ = 0;
  size_ = 0;
  memory_ = Tensor();
}

}  // namespace penstock

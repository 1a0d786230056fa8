// SPDX-License-Identifier: Apache-2.0
//
// Buckets: the bucket of each row of a dense table. TensorFlow exports such tables bucket by
// bucket, so this class follows TensorFlow's rules: it uses quadratic probing, and the number of
// buckets is a power of two that doubles when too many buckets are taken. The bucket of a removed
// row stays taken until a new row reuses it, or the number of buckets grows. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace penstock {

class Buckets {
 public:
  struct TakenBucket {
    int64_t bucket, row;
    bool removed;
  };

  // Makes `count` free buckets. REQUIRES: `count` is a power of two, and 0 < max_load < 1.
  Buckets(int64_t count, float max_load) : count_(count), max_load_(max_load) {}

  int64_t count() const { return count_; }
  // Returns true if the number of buckets suffices for a table of `rows` rows.
  bool HasRoomFor(int64_t rows) const {
    return static_cast<float>(rows) <= static_cast<float>(count_) * max_load_;
  }
  // Frees all buckets, and sets their number. REQUIRES: `count` is a power of two.
  void Reset(int64_t count);

  // Takes a bucket for a new key. Returns the key's row: the removed row whose bucket it reuses,
  // else `new_row`. REQUIRES: HasRoomFor(all rows that are not removed).
  int64_t Take(uint64_t hash, int64_t new_row);
  void Remove(int64_t row) { removed_.insert(row); }
  // Returns the taken buckets in order.
  std::vector<TakenBucket> All() const;

 private:
  int64_t count_;
  const float max_load_;
  absl::flat_hash_map<int64_t, int64_t> row_of_;  // the row, by bucket
  absl::flat_hash_set<int64_t> removed_;          // rows whose buckets stay taken
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// AdmissionFilter: counts the occurrences of keys that have no row yet, in a counting Bloom filter
// of 8-bit counters. It takes little memory, and its counts are approximate.
//
// A key that shares all of its counters with other keys is admitted too early. When the filter has
// counted as many occurrences as it has counters, it halves all counts, so that rare keys do not
// fill it up over time. Not thread-safe.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

class AdmissionFilter {
 public:
  static constexpr int64_t kCountMax = 255;

  // Admits a key at its `admit_after`-th occurrence, 1 to kCountMax; the filter needs no memory if
  // it is 1. `counters`, at least 1, is rounded up to a power of two.
  AdmissionFilter(int64_t admit_after, int64_t counters);

  // Allocates the counters, if that has not been done. ResourceExhausted if there is no memory.
  Status Reserve(Allocator& allocator);
  // Counts one occurrence. Returns true if the key is admitted; its count is then subtracted.
  // REQUIRES: Reserve has succeeded.
  bool Admit(uint64_t hash);
  void Clear();

 private:
  static constexpr int kHashes = 3;

  uint8_t& Counter(uint64_t hash, int i) {
    // Double hashing: the second hash is made odd, so that it visits all counters.
    return counters_[(hash + i * ((hash >> 32) | 1)) & (size_ - 1)];
  }

  const int64_t admit_after_;
  const uint64_t size_;  // number of counters, a power of two
  Tensor memory_;
  uint8_t* counters_ = nullptr;
  int64_t counted_ = 0;  // occurrences counted; halved together with the counters
};

}  // namespace penstock

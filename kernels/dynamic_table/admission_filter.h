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

  // The filter admits a key at its `admit_after`-th occurrence. `admit_after` is 1 to kCountMax; if
  // it is 1, the filter needs no memory. `counters`, at least 1, is rounded up to a power of two.
  AdmissionFilter(int64_t admit_after, int64_t counters);

  // Allocates the counters, unless they are allocated already. ResourceExhausted if there is no
  // memory.
  Status Reserve(Allocator& allocator);
  // Counts one occurrence of the key with this hash. If the key is admitted, subtracts its count
  // and returns true. REQUIRES: Reserve has succeeded.
  bool Admit(uint64_t hash);
  void Clear();

 private:
  static constexpr int kHashes = 3;

  uint8_t& Counter(uint64_t hash, int i) {
    // Double hashing: the step is odd, so that the sequence can reach every counter.
    return counters_[(hash + i * ((hash >> 32) | 1)) & (size_ - 1)];
  }

  const int64_t admit_after_;
  const uint64_t size_;  // number of counters, a power of two
  Tensor memory_;
  uint8_t* counters_ = nullptr;
  int64_t counted_ = 0;  // occurrences counted; halved together with the counters
};

}  // namespace penstock

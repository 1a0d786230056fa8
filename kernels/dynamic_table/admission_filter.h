// SPDX-License-Identifier: Apache-2.0
//
// AdmissionFilter: counts how often keys occur that have no row yet, in a counting Bloom filter of
// 8-bit counters. It takes little memory, and its counts are approximate.
//
// Keys that share all of their counters with others are admitted too early. When as many keys were
// counted as there are counters, all counts are halved, so that keys that came once long ago do not
// fill it up. Not thread-safe.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

class AdmissionFilter {
 public:
  static constexpr int64_t kCountMax = 255;

  // A key is admitted the `admit_after`-th time: 1 (the filter has no memory then) to kCountMax.
  // `counters` >= 1 is rounded up to a power of two.
  AdmissionFilter(int64_t admit_after, int64_t counters);

  // Makes the counters, if there are none yet. ResourceExhausted if there is no memory.
  Status Reserve(Allocator& allocator);
  // Counts one occurrence. True: the key is admitted, and its count is taken back. REQUIRES
  // Reserve.
  bool Admit(uint64_t hash);
  void Clear();

 private:
  static constexpr int kHashes = 3;

  uint8_t& Counter(uint64_t hash, int i) {
    // Double hashing, with an odd second number.
    return counters_[(hash + i * ((hash >> 32) | 1)) & (size_ - 1)];
  }

  const int64_t admit_after_;
  const uint64_t size_;  // counters: a power of two
  Tensor memory_;
  uint8_t* counters_ = nullptr;
  int64_t counted_ = 0;  // since they were halved
};

}  // namespace penstock

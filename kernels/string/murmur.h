// SPDX-License-Identifier: Apache-2.0
//
// MurmurHash64A as TensorFlow uses it, with its seed: for buckets of strings, whose numbers
// programs keep.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/status.h"

namespace penstock {

// A. Appleby's MurmurHash64A, public domain.
inline uint64_t Murmur64(string_view text) {
  constexpr uint64_t kSeed = 0xDECAFCAFFE, kMultiplier = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t hash = kSeed ^ text.size() * kMultiplier;
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    word *= kMultiplier;
    word ^= word >> kShift;
    hash = (hash ^ word * kMultiplier) * kMultiplier;
  }
  if (!text.empty()) {
    uint64_t rest = 0;
    std::memcpy(&rest, text.data(), text.size());
    hash = (hash ^ rest) * kMultiplier;
  }
  hash = (hash ^ hash >> kShift) * kMultiplier;
  return hash ^ hash >> kShift;
}

}  // namespace penstock

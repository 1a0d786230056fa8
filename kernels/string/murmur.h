// SPDX-License-Identifier: Apache-2.0
//
// MurmurHash64A with the seed that TensorFlow uses for hash buckets of strings. Programs store the
// bucket numbers, so the hash must never change.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/status.h"

namespace penstock {

// Returns the hash of a text by MurmurHash64A (A. Appleby, public domain).
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

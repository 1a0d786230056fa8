// SPDX-License-Identifier: Apache-2.0
//
// Philox4x32-10: a counter-based random generator. Salmon, Moraes, Dror and Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC'11.
//
// A value: copy it, skip it, draw from it. Each draw gives four words and moves the counter by one.
#pragma once

#include <array>
#include <cstdint>

namespace penstock {

class Philox {
 public:
  using Words = std::array<uint32_t, 4>;

  Philox() = default;
  // The low seed is the key, the high one the upper half of the counter: the stream.
  Philox(uint64_t low, uint64_t high)
      : key_{Low(low), High(low)}, counter_{0, 0, Low(high), High(high)} {}
  // From the raw parts.
  Philox(const std::array<uint32_t, 2>& key, const Words& counter) : key_(key), counter_(counter) {}

  Words Next() {
    const Words words = Block(counter_, key_);
    Skip(1);
    return words;
  }

  // Moves on by `blocks` draws.
  void Skip(uint64_t blocks) {
    const uint64_t low = counter_[0] | uint64_t{counter_[1]} << 32;
    const uint64_t sum = low + blocks;
    counter_[0] = Low(sum);
    counter_[1] = High(sum);
    if (sum < low && ++counter_[2] == 0) ++counter_[3];
  }

 private:
  static constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  static constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;  // golden ratio, sqrt(3) - 1
  static constexpr int kRounds = 10;

  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  static Words Block(Words c, std::array<uint32_t, 2> k) {
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t a = uint64_t{kMultiplier0} * c[0];
      const uint64_t b = uint64_t{kMultiplier1} * c[2];
      c = {High(b) ^ c[1] ^ k[0], Low(b), High(a) ^ c[3] ^ k[1], Low(a)};
      k[0] += kWeyl0;
      k[1] += kWeyl1;
    }
    return c;
  }

  std::array<uint32_t, 2> key_ = {};
  Words counter_ = {};
};

}  // namespace penstock

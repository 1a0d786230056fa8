// SPDX-License-Identifier: Apache-2.0
//
// Philox4x32-10: a counter-based random number generator. Block i of a stream depends only on the
// key and the counter, so any thread can generate any section of a stream.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3.
// SC'11, doi 10.1145/2063384.2063405.
//
// A value type. Not thread-safe; copies are independent.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace penstock {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  Philox() = default;
  Philox(Block counter, Key key) : counter_(counter), key_(key) {}
  // Returns the stream of a pair of seeds: the first is the key, the second the upper half of the
  // counter.
  static Philox FromSeeds(uint64_t seed, uint64_t seed2) {
    return Philox({0, 0, Low(seed2), High(seed2)}, {Low(seed), High(seed)});
  }

  // Returns the next block and increments the counter, a number of 128 bits.
  Block operator()() {
    Block x = counter_;
    Key k = key_;
    Skip(1);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{kMultiplier0} * x[0], b = uint64_t{kMultiplier1} * x[2];
      x = {High(b) ^ x[1] ^ k[0], Low(b), High(a) ^ x[3] ^ k[1], Low(a)};
      k = {k[0] + kWeyl0, k[1] + kWeyl1};
    }
    return x;
  }

  // Skips `blocks` blocks.
  void Skip(uint64_t blocks) {
    const uint64_t low = Join(counter_[0], counter_[1]), sum = low + blocks;
    const uint64_t high = Join(counter_[2], counter_[3]) + (sum < low);
    counter_ = {Low(sum), High(sum), Low(high), High(high)};
  }

  const Block& counter() const { return counter_; }
  const Key& key() const { return key_; }

 private:
  static constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  static constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
  static uint64_t Join(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

  Block counter_ = {};
  Key key_ = {};
};

// Reads the numbers of a stream one at a time.
class PhiloxNumbers {
 public:
  explicit PhiloxNumbers(Philox stream) : stream_(stream) {}
  // Starts at number `first` of the stream; a block has four numbers.
  PhiloxNumbers(Philox stream, uint64_t first) : stream_(stream) {
    stream_.Skip(first / 4);
    for (uint64_t i = 0; i < first % 4; ++i) (*this)();
  }
  uint32_t operator()() {
    if (used_ == 4) {
      block_ = stream_();
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  Philox stream_;
  Philox::Block block_ = {};
  int used_ = 4;
};

// Returns a uniform number in [0, n), made from the random words that `draw()` returns. REQUIRES: n
// > 0. Draws again if a word is below 2^w mod n, where w is the number of bits of Word, because
// such words would make small results more likely.
template <class Word, class Draw>
Word UniformBelow(Word n, Draw&& draw) {
  if ((n & (n - 1)) == 0) return draw() & (n - 1);
  const Word skewed = std::numeric_limits<Word>::max() % n + 1;
  Word word = draw();
  while (word < skewed) word = draw();
  return word % n;
}

}  // namespace penstock

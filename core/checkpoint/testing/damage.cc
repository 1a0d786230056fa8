// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/testing/damage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace penstock {

void ExpectFlippedBitsAreDetected(const std::string& contents, const ReadContents& read) {
  for (size_t byte = 0; byte < contents.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = contents;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      EXPECT_FALSE(read(damaged).ok()) << "byte " << byte << " bit " << bit;
    }
  }
}

void ExpectTruncationsAreDetected(const std::string& contents, const ReadContents& read) {
  for (size_t size = 0; size < contents.size(); ++size) {
    EXPECT_FALSE(read(contents.substr(0, size)).ok()) << size;
  }
}

void ExpectCopiedPiecesAreDetected(const std::string& contents, const ReadContents& read) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = contents;
    const size_t from = random() % damaged.size(), to = random() % damaged.size();
    const size_t count = random() % (damaged.size() - std::max(from, to)) + 1;
    damaged.replace(to, count, contents.substr(from, count));
    if (damaged != contents) {
      EXPECT_FALSE(read(damaged).ok()) << from << " " << to;
    }
  }
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/philox.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

// The known-answer vectors that the authors published with their library (Random123).
TEST(Philox, KnownAnswers) {
  const Philox::Block zero = {0, 0, 0, 0};
  EXPECT_EQ(Philox(zero, {0, 0})(),
            (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(Philox({f, f, f, f}, {f, f})(),
            (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})(),
            (Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SkippingIsDrawing) {
  Philox drawn = Philox::FromSeeds(87654321, 1234), skipped = drawn;
  for (int i = 0; i < 1000; ++i) drawn();
  skipped.Skip(1000);
  EXPECT_EQ(drawn(), skipped());
}

TEST(Philox, TheCounterCarries) {
  const uint32_t f = 0xffffffff;
  Philox stream({f, f, f, 7}, {1, 2});
  stream.Skip(1);
  EXPECT_EQ(stream.counter(), (Philox::Block{0, 0, 0, 8}));
  Philox wide({5, 0, 0, 0}, {1, 2});
  wide.Skip(~uint64_t{0});
  EXPECT_EQ(wide.counter(), (Philox::Block{4, 0, 1, 0}));
}

TEST(Philox, SeedsAreKeyAndCounter) {
  const Philox stream = Philox::FromSeeds(0x1122334455667788, 0x99aabbccddeeff00);
  EXPECT_EQ(stream.key(), (Philox::Key{0x55667788, 0x11223344}));
  EXPECT_EQ(stream.counter(), (Philox::Block{0, 0, 0xddeeff00, 0x99aabbcc}));
}

TEST(PhiloxNumbers, StartAnywhere) {
  const Philox stream = Philox::FromSeeds(3, 4);
  PhiloxNumbers all(stream);
  for (uint64_t first = 0; first < 20; ++first) {
    PhiloxNumbers from(stream, first);
    EXPECT_EQ(all(), from());
  }
}

}  // namespace
}  // namespace penstock

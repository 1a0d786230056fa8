// SPDX-License-Identifier: Apache-2.0
#include "core/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// Computes one bit at a time, by the definition.
uint32_t Reference(absl::string_view data) {
  uint32_t crc = ~0u;
  for (unsigned char byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  // Values from RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
}

TEST(Crc32c, EveryLengthAndOffset) {
  std::string data;
  for (int i = 0; i < 700; ++i) data += static_cast<char>(i * 37 + i / 11);
  for (size_t length = 0; length < 600; ++length) {
    const absl::string_view part = absl::string_view(data).substr(length % 17, length);
    ASSERT_EQ(Crc32c(part), Reference(part)) << length;
  }
}

TEST(Crc32c, ExtendsOverAnyCut) {
  const std::string data = "the checksum of A and B, from that of A";
  for (size_t cut = 0; cut <= data.size(); ++cut) {
    const absl::string_view whole = data;
    EXPECT_EQ(ExtendCrc32c(Crc32c(whole.substr(0, cut)), whole.substr(cut)), Crc32c(whole));
  }
}

TEST(Crc32c, MaskIsReversedAndChanges) {
  for (uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) {
    EXPECT_EQ(UnmaskCrc(MaskCrc(crc)), crc);
    EXPECT_NE(MaskCrc(crc), crc);
  }
  EXPECT_EQ(MaskCrc(0), 0xa282ead8u);
  EXPECT_EQ(MaskCrc(0x00008000u), 1 + 0xa282ead8u);
}

}  // namespace
}  // namespace penstock

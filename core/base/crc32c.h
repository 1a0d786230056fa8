// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli), the checksum of checkpoints, records and event files, and its masked form
// (rotate right by 15, add 0xa282ead8). Files store the masked form, because a CRC of data that
// itself contains CRCs detects errors badly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock {

uint32_t Crc32c(absl::string_view data);
// Returns the checksum of the bytes A followed by the bytes `b`, given the checksum of A.
uint32_t ExtendCrc32c(uint32_t crc_of_a, absl::string_view b);

inline uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace penstock

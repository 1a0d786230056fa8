// SPDX-License-Identifier: Apache-2.0
//
// Sizes in a record's frame, and what reads and writes its numbers (FORMAT.md).
#pragma once

#include <cstdint>

#include "core/base/crc32c.h"
#include "core/base/little_endian.h"

namespace penstock {

inline constexpr int64_t kLengthBytes = sizeof(uint64_t);
inline constexpr int64_t kChecksumBytes = sizeof(uint32_t);

}  // namespace penstock

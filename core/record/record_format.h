// SPDX-License-Identifier: Apache-2.0
//
// Sizes and little-endian numbers of a record's frame (FORMAT.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/crc32c.h"

namespace penstock {

inline constexpr int64_t kLengthBytes = sizeof(uint64_t);
inline constexpr int64_t kChecksumBytes = sizeof(uint32_t);

template <class T>
T LittleEndian(const char* bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= T{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}
template <class T>
void PutLittleEndian(T value, char* bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
}

}  // namespace penstock

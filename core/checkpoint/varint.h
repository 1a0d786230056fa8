// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes numbers of variable length: seven bits per byte, the least significant first,
// the top bit set in all bytes but the last.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/status.h"

namespace penstock {

inline void AppendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) bytes->push_back(static_cast<char>(value | 0x80));
  bytes->push_back(static_cast<char>(value));
}

// Removes a number from the front of *bytes. Returns false if the number is truncated, too large
// for T, or encoded in more bytes than necessary. So each number has only one valid form, and more
// kinds of damage are detected.
template <class T>
bool TakeVarint(string_view* bytes, T* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const uint64_t byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) return false;
    result |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = static_cast<T>(result);
      return result <= std::numeric_limits<T>::max();
    }
  }
  return false;
}

}  // namespace penstock

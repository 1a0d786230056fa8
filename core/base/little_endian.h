// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the little-endian numbers of files, on any machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

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

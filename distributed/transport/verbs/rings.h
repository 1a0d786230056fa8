// SPDX-License-Identifier: Apache-2.0
//
// The rings of a connection: their sizes, and the version of their contents
// (records/tensor_record.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// To be raised with each change of the handshake, the records or the rings.
inline constexpr uint32_t kVerbsVersion = 2;
// Sizes are powers of two. A message says how many bytes of a ring were written.
inline constexpr size_t kVerbsTensorRingBytes = size_t{512} << 10;
inline constexpr size_t kVerbsCommandRingBytes = size_t{64} << 10;

}  // namespace penstock

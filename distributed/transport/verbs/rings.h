// SPDX-License-Identifier: Apache-2.0
//
// The rings of a connection: their sizes, and the version of their contents
// (records/tensor_record.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// The version of the handshake, the records and the rings. Raise it when one of them changes.
inline constexpr uint32_t kVerbsVersion = 2;
// The sizes are powers of two. A message says in 20 bits how many bytes of a ring were written.
inline constexpr size_t kVerbsTensorRingBytes = size_t{512} << 10;
inline constexpr size_t kVerbsCommandRingBytes = size_t{64} << 10;

}  // namespace penstock

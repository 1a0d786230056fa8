// SPDX-License-Identifier: Apache-2.0
#include "core/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace penstock {

uint32_t ExtendCrc32c(uint32_t crc_of_a, absl::string_view b) {
  constexpr size_t kChunk = size_t{1} << 30;  // because the library's lengths are ints
  // The library inverts neither its argument nor its result.
  uint32_t state = ~crc_of_a;
  while (!b.empty()) {
    const size_t count = std::min(b.size(), kChunk);
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(b.data()));  // only read
    state = crc32_iscsi(bytes, static_cast<int>(count), state);
    b.remove_prefix(count);
  }
  return ~state;
}

uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Converts a tensor's elements to the bytes of a data file (FORMAT.md) and their checksum, and the
// bytes of strings back. Elements of other types need no conversion.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The maximum size of a piece that is written at once. With 1 MiB, a piece is still in the
// second-level cache when it is written, after its checksum has been computed.
inline constexpr int64_t kPieceBytes = 1 << 20;

struct WrittenBytes {
  int64_t size = 0;
  uint32_t masked_crc = 0;
};
// Calls `append` with the bytes of the tensor, in pieces of at most kPieceBytes. Unimplemented for
// types that cannot be saved.
StatusOr<WrittenBytes> WriteTensorBytes(const Tensor& tensor,
                                        absl::FunctionRef<Status(string_view)> append);

// Parses `bytes`, the bytes of a tensor of `count` strings, into `strings`; if `strings` is null,
// only checks them. DataLoss if the checksums or lengths are wrong; allocates nothing before it has
// checked them.
Status ReadStrings(string_view bytes, int64_t count, uint32_t masked_crc, std::string* strings);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads the bytes of a tensor of variants in a data file (FORMAT.md), such as the state
// of a dataset's iterator.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/variant.h"

namespace penstock {

// The fewest bytes that a variant takes: its length and a checksum.
inline constexpr int64_t kVariantFileBytesMin = 5;

// Calls `append` with one piece after another, and returns the checksum of all of them in the form
// that FORMAT.md describes. Returns an error if a value cannot be saved.
StatusOr<uint32_t> WriteVariants(absl::Span<const Variant> variants,
                                 absl::FunctionRef<Status(string_view)> append);

// Parses an entry of `count` variants, which has these `bytes`, into `variants`; only checks the
// checksums and lengths if `variants` is null. DataLoss if these are wrong. InvalidArgument if a
// value's class does not accept its contents; ResourceExhausted if the values together would need
// much more memory than `bytes`.
Status ReadVariants(string_view bytes, int64_t count, uint32_t masked_crc, Variant* variants);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Parses and serializes the values of a bundle's index (FORMAT.md), and names the bundle's files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace penstock {

// The place of one tensor's bytes in the data files. The entry of a tensor that was saved in slices
// has no bytes; the entries of its slices have them.
struct BundleEntry {
  DType dtype = DType::kInvalid;
  Shape shape;
  int shard = 0;
  int64_t offset = 0;
  int64_t size = 0;  // bytes
  uint32_t masked_crc = 0;
  std::vector<TensorSlice> slices;  // each has an entry of its own, under the key SliceKey(...)
};

std::string SerializeBundleEntry(const BundleEntry& entry);
// Parses an entry. Checks each field by itself, and that the size fits dtype and shape. DataLoss
// says what is malformed; Unimplemented for types that cannot be saved.
StatusOr<BundleEntry> ParseBundleEntry(string_view bytes);

// Returns the value that an index has under the empty key.
std::string SerializeBundleHeader(int num_shards);
// Returns the number of shards. DataLoss if the header is malformed; Unimplemented for big-endian
// data and for format versions later than 1.
StatusOr<int> ParseBundleHeader(string_view bytes);

// Return "prefix.index" and "prefix.data-00002-of-00004".
std::string IndexPath(string_view prefix);
std::string DataPath(string_view prefix, int shard, int num_shards);
// Returns the directory part of `path`, "." if it has none.
std::string DirectoryOf(string_view path);

}  // namespace penstock

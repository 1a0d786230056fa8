// SPDX-License-Identifier: Apache-2.0
//
// The functions of LookupTable for dense tables. A dense table has buckets in addition to its rows,
// because an export lists the buckets, as in TensorFlow.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/lookup/lookup_table.h"
#include "kernels/string/murmur.h"

namespace penstock {
namespace {

template <class T>
uint64_t NumberAt(const std::string& key, int64_t i) {
  T number;
  std::memcpy(&number, key.data() + i * sizeof(T), sizeof(T));
  return static_cast<uint64_t>(number);
}

// Returns element i of a key as a number. REQUIRES: the key type is not string. Negative numbers
// are sign-extended.
uint64_t NumberAt(DType dtype, const std::string& key, int64_t i) {
  switch (dtype) {
    case DType::kInt8:
      return NumberAt<int8_t>(key, i);
    case DType::kInt16:
      return NumberAt<int16_t>(key, i);
    case DType::kInt32:
      return NumberAt<int32_t>(key, i);
    case DType::kInt64:
    case DType::kUint64:
      return NumberAt<uint64_t>(key, i);
    case DType::kUint16:
      return NumberAt<uint16_t>(key, i);
    case DType::kUint32:
      return NumberAt<uint32_t>(key, i);
    default:
      return NumberAt<uint8_t>(key, i);
  }
}

Shape RowsOf(const Tensor& flattened, const Shape& row) {
  Dims dims = {flattened.dim(0)};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  return Shape(dims);
}

bool IsFlattened(const Tensor& rows, const Shape& row) {
  return rows.rank() == 2 && rows.dim(1) == row.num_elements();
}

}  // namespace

// Returns the hash that TensorFlow uses for the key.
uint64_t LookupTable::HashOf(const std::string& key) const {
  if (spec_.key == DType::kString) return Murmur64(key);
  const int64_t n = spec_.key_shape.num_elements();
  if (n == 1) return NumberAt(spec_.key, key, 0);
  uint64_t hash = 0;
  for (int64_t i = 0; i < n; ++i) {
    hash ^= NumberAt(spec_.key, key, i) + 0x9e3779b97f4a7800 + (hash << 10) + (hash >> 4);
  }
  return hash;
}

void LookupTable::MakeRoomFor(int64_t rows) {
  if (spec_.kind != Kind::kDense || buckets_.HasRoomFor(rows)) return;
  std::vector<std::string> keys;  // in the order in which TensorFlow would move them
  std::vector<int64_t> removed;
  for (const Buckets::TakenBucket& taken : buckets_.All()) {
    if (taken.removed) {
      removed.push_back(taken.row);
    } else {
      keys.push_back(keys_[taken.row]);
    }
  }
  // Removes the rows with the highest numbers first. DropRow moves the last row to the place of the
  // removed row, and in this order the last row is never one that has still to be removed.
  std::sort(removed.begin(), removed.end(), std::greater<>());
  for (const int64_t row : removed) DropRow(row);
  do {
    buckets_.Reset(buckets_.count() * 2);
  } while (!buckets_.HasRoomFor(rows));
  for (const std::string& key : keys) buckets_.Take(HashOf(key), rows_.at(key));
}

void LookupTable::FlattenedToRows(Tensor* keys, Tensor* values) const {
  if (!IsFlattened(*keys, spec_.key_shape) || !IsFlattened(*values, spec_.value_shape)) return;
  *keys = keys->Reshaped(RowsOf(*keys, spec_.key_shape));
  *values = values->Reshaped(RowsOf(*values, spec_.value_shape));
}

Status LookupTable::ExportBuckets(Tensor* keys, Tensor* values, Allocator& allocator) const {
  const int64_t count = buckets_.count();
  ASSIGN_OR_RETURN(const Shape keys_shape,
                   Shape::Make(Dims{count, spec_.key_shape.num_elements()}));
  ASSIGN_OR_RETURN(const Shape values_shape,
                   Shape::Make(Dims{count, spec_.value_shape.num_elements()}));
  ASSIGN_OR_RETURN(*keys, Tensor::Make(allocator, spec_.key, keys_shape));
  ASSIGN_OR_RETURN(*values, Tensor::Make(allocator, spec_.value, values_shape));
  if (spec_.value != DType::kString) std::memset(values->mutable_raw_data(), 0, values->bytes());
  const std::string empty = KeyAt(spec_.empty_key, 0);
  // A table of the V1 op has no deleted_key; empty_key then stands for removed entries, too.
  const std::string deleted = spec_.deleted_key.valid() ? KeyAt(spec_.deleted_key, 0) : empty;
  for (int64_t i = 0; i < count; ++i) CopyKey(empty, keys, i);
  for (const Buckets::TakenBucket& taken : buckets_.All()) {
    CopyKey(taken.removed ? deleted : keys_[taken.row], keys, taken.bucket);
    CopyRow(taken.row, values, taken.bucket);
  }
  return OkStatus();
}

}  // namespace penstock

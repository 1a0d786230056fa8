// SPDX-License-Identifier: Apache-2.0
//
// LookupTable: the table behind all lookup ops, a hash map from keys to rows of values.
//
// The kind determines the allowed operations. A kHash table is filled once (Initialize) and then
// only read; kMutable tables change; the keys of a kDense table may be small vectors, and two keys
// are reserved. Thread-safe: many threads may read while none writes. Every call checks types and
// shapes; if a check fails, nothing is changed.
//
// Actions in a StateLog: "insert" {keys, values}, "erase" {keys}, "import" {keys, values},
// "initialize" {keys, values}.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"
#include "core/op/resource.h"
#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"
#include "kernels/lookup/buckets.h"

namespace penstock {

class LookupTable final : public Resource {
 public:
  enum class Kind { kHash, kMutable, kMutableOfTensors, kDense };
  struct Spec {
    Kind kind = Kind::kHash;
    DType key = DType::kInvalid, value = DType::kInvalid;
    Shape key_shape = {}, value_shape = {};   // shapes of one key and of one value
    Tensor empty_key = {}, deleted_key = {};  // kDense: reserved keys; may be invalid tensors
    // For kDense: the number of buckets of an export of a small table, a power of two; and the
    // fraction of buckets that may be taken before their number doubles.
    int64_t initial_buckets = 131072;
    float max_load = 0.8f;
  };

  // Makes a table. InvalidArgument if the spec is not valid.
  static StatusOr<std::shared_ptr<LookupTable>> Make(std::string name, Spec spec);
  LookupTable(std::string name, Spec spec) : name_(std::move(name)), spec_(std::move(spec)) {}

  static const char* TypeOf(Kind kind);
  const char* TypeName() const override { return TypeOf(spec_.kind); }
  std::string DebugString() const override ABSL_LOCKS_EXCLUDED(mu_);
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override;
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;
  const Spec& spec() const { return spec_; }
  const std::string& name() const { return name_; }

  // Returns the values of `keys`. Keys that are not in the table get `default_value`, which is one
  // value, or one for each key. FailedPrecondition if a kHash table is not initialized.
  StatusOr<Tensor> Find(const Tensor& keys, const Tensor& default_value, Allocator& allocator) const
      ABSL_LOCKS_EXCLUDED(mu_);
  Status Insert(const Tensor& keys, const Tensor& values, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Removes keys. Ignores keys that are not in the table. Unimplemented for a kHash table.
  Status Remove(const Tensor& keys, const UpdateOrigin& origin) ABSL_LOCKS_EXCLUDED(mu_);
  // Replaces all entries by `keys` and `values`, the results of Export. For a kHash table, does the
  // same as Initialize. InvalidArgument if the tensors do not fit the table.
  Status Import(const Tensor& keys, const Tensor& values, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Fills a kHash table. A second call changes nothing: it returns FailedPrecondition unless it has
  // as many entries as the first. InvalidArgument for other kinds; FailedPrecondition if a key
  // occurs with two values.
  Status Initialize(const Tensor& keys, const Tensor& values, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  int64_t size() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns all entries. For a kDense table, as in TensorFlow, returns all buckets: matrices with
  // one row per bucket, with empty_key for free buckets and deleted_key for buckets of removed
  // entries. FailedPrecondition if a kHash table is not initialized.
  Status Export(Tensor* keys, Tensor* values, Allocator& allocator) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Returns the number of keys in a tensor. InvalidArgument if the tensor does not fit the
  // table.
  StatusOr<int64_t> CountKeys(const Tensor& keys) const;
  Status CheckValues(const Tensor& keys, const Tensor& values) const;
  // Checks a key. InvalidArgument if the key is reserved.
  Status CheckAllowed(const std::string& key) const;
  bool IsReserved(const std::string& key) const;
  // Returns a key as bytes: the string, or the bytes of the elements.
  std::string KeyAt(const Tensor& keys, int64_t i) const;
  void Put(const Tensor& keys, int64_t i, const Tensor& values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Erase(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes a row of the storage, and moves the last row to its place.
  void DropRow(int64_t row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CopyRow(int64_t row, Tensor* values, int64_t i) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void CopyKey(const std::string& key, Tensor* keys, int64_t i) const;

  // These functions are for kDense tables (dense_table.cc).
  uint64_t HashOf(const std::string& key) const;
  void MakeRoomFor(int64_t rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FlattenedToRows(Tensor* keys, Tensor* values) const;
  Status ExportBuckets(Tensor* keys, Tensor* values, Allocator& allocator) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const Spec spec_;
  mutable SharedMutex mu_;
  bool initialized_ ABSL_GUARDED_BY(mu_) = false;  // for kHash: Initialize has been called
  absl::flat_hash_map<std::string, int64_t> rows_ ABSL_GUARDED_BY(mu_);
  Buckets buckets_ ABSL_GUARDED_BY(mu_){spec_.initial_buckets, spec_.max_load};  // kDense
  std::vector<std::string> keys_ ABSL_GUARDED_BY(mu_);  // the key of each row
  // Values row by row: strings, or the bytes of other types.
  std::vector<std::string> strings_ ABSL_GUARDED_BY(mu_);
  std::string bytes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

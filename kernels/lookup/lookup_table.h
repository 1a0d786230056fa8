// SPDX-License-Identifier: Apache-2.0
//
// LookupTable: the one table behind all the lookup ops: a hash map from keys to rows of values.
//
// Its kind says what may be done: a kHash table is filled once (Initialize) and then only read;
// kMutable ones change; a kDense table's keys may be small vectors, and two of them are reserved.
// Thread-safe: many may read while nobody writes. Every call checks types and shapes; nothing is
// changed if that fails.
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
    Shape key_shape = {}, value_shape = {};   // of one
    Tensor empty_key = {}, deleted_key = {};  // kDense: not allowed as keys; may be invalid
    // kDense: how many buckets an export shows at first, a power of two, and which part of them may
    // be taken before they are doubled.
    int64_t initial_buckets = 131072;
    float max_load = 0.8f;
  };

  // InvalidArgument if no table can be like that.
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

  // The values of `keys`; `default_value` (one value, or one for each key) for those not there.
  StatusOr<Tensor> Find(const Tensor& keys, const Tensor& default_value, Allocator& allocator) const
      ABSL_LOCKS_EXCLUDED(mu_);
  Status Insert(const Tensor& keys, const Tensor& values, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Keys that are not there are passed over.
  Status Remove(const Tensor& keys, const UpdateOrigin& origin) ABSL_LOCKS_EXCLUDED(mu_);
  // Replaces everything (in a kHash table: once). Takes what Export gives.
  Status Import(const Tensor& keys, const Tensor& values, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  // kHash only; a second time only if it brings as many entries, and then it changes nothing.
  Status Initialize(const Tensor& keys, const Tensor& values, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  int64_t size() const ABSL_LOCKS_EXCLUDED(mu_);
  // All entries. Of a kDense table, as in TensorFlow, all buckets: matrices with one row for each;
  // empty_key stands for those that are free, deleted_key for those whose entry was removed.
  Status Export(Tensor* keys, Tensor* values, Allocator& allocator) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // How many keys a tensor holds, or what is wrong with it.
  StatusOr<int64_t> CountKeys(const Tensor& keys) const;
  Status CheckValues(const Tensor& keys, const Tensor& values) const;
  // Those that are reserved.
  Status CheckAllowed(const std::string& key) const;
  bool Reserved(const std::string& key) const;
  // A key as bytes: a string itself, the elements of all else.
  std::string KeyAt(const Tensor& keys, int64_t i) const;
  void Put(const Tensor& keys, int64_t i, const Tensor& values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Erase(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops a row of the storage: the last row takes its place.
  void DropRow(int64_t row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CopyRow(int64_t row, Tensor* values, int64_t i) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void CopyKey(const std::string& key, Tensor* keys, int64_t i) const;

  // For kDense tables (dense_table.cc).
  uint64_t HashOf(const std::string& key) const;
  void MakeRoomFor(int64_t rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FlattenedToRows(Tensor* keys, Tensor* values) const;
  Status ExportBuckets(Tensor* keys, Tensor* values, Allocator& allocator) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const Spec spec_;
  mutable SharedMutex mu_;
  bool initialized_ ABSL_GUARDED_BY(mu_) = false;  // kHash
  absl::flat_hash_map<std::string, int64_t> rows_ ABSL_GUARDED_BY(mu_);
  Buckets buckets_ ABSL_GUARDED_BY(mu_){spec_.initial_buckets, spec_.max_load};  // kDense
  std::vector<std::string> keys_ ABSL_GUARDED_BY(mu_);                           // of each row
  // Values row by row: strings, or the bytes of all else.
  std::vector<std::string> strings_ ABSL_GUARDED_BY(mu_);
  std::string bytes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

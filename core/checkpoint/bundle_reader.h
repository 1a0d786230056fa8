// SPDX-License-Identifier: Apache-2.0
//
// BundleReader: reads a checkpoint in TensorFlow's V2 format (FORMAT.md), whole tensors or parts.
//
// The index is verified as a whole on opening, each tensor's checksum on reading.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/checkpoint/bundle_entry.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/tensor/tensor.h"

namespace penstock {

class BundleReader final : public CheckpointReader {
 public:
  using Entries = std::map<std::string, BundleEntry, std::less<>>;

  // NotFound if there is no index of that prefix. `env` must outlive the reader. Data files are
  // opened when they are needed.
  static StatusOr<std::unique_ptr<BundleReader>> Open(Env& env, std::string prefix);

  // Returns the status with which Open would read an index of these contents. For writers, which
  // must not publish what no reader understands.
  static Status CheckIndex(Env& env, string_view contents);

  int num_shards() const { return num_shards_; }
  // By name. Parts of a sliced tensor are not listed here.
  const Entries& tensors() const { return tensors_; }
  // NotFound "Key NAME not found in checkpoint" (client programs depend on these words).
  StatusOr<const BundleEntry*> Find(string_view name) const;
  std::vector<std::string> names() const override;
  StatusOr<SavedTensor> Describe(string_view name) const override;

  // The entry of one of the slices of a tensor. REQUIRES that its entry lists it.
  const BundleEntry& Slice(string_view name, const TensorSlice& slice) const;
  // Whether every data file is there and holds what the index says, as far as sizes can tell.
  Status CheckDataFiles() const;

  StatusOr<Tensor> Read(string_view name, Allocator& allocator = CpuAllocator()) const;
  StatusOr<Tensor> ReadSlice(string_view name, const TensorSlice& slice,
                             Allocator& allocator = CpuAllocator()) const override;
  // Reads every byte of a tensor and keeps none.
  Status Verify(string_view name) const;

 private:
  // Bytes that hold the box `box` of a tensor.
  struct Part {
    const BundleEntry* entry;
    TensorSlice box;
    const RandomAccessFile* file;
  };

  BundleReader(Env& env, std::string prefix) : CheckpointReader(std::move(prefix)), env_(env) {}
  Status ReadIndex();
  Status ParseIndex(string_view contents);
  Status AddEntry(string_view key, string_view value);
  Status CheckSlices(const std::string& name, const BundleEntry& entry) const;
  Status CheckOwnBytes(const std::string& name, const BundleEntry& entry) const;
  StatusOr<const RandomAccessFile*> DataFile(const BundleEntry& entry) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // The parts that have elements in `box`, which they cover.
  StatusOr<std::vector<Part>> PartsOf(string_view name, const BundleEntry& entry,
                                      const TensorSlice& box) const;

  Env& env_;
  int num_shards_ = 0;
  Entries tensors_;
  Entries slices_;  // by SliceKey
  mutable Mutex mu_;
  mutable std::map<int, std::unique_ptr<RandomAccessFile>> files_ ABSL_GUARDED_BY(mu_);  // by shard
};

}  // namespace penstock

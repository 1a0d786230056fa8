// SPDX-License-Identifier: Apache-2.0
//
// BundleReader: reads a checkpoint in TensorFlow's V2 format (FORMAT.md), complete tensors or
// slices.
//
// Open verifies the whole index; reading a tensor verifies the tensor's checksum. Thread-safe after
// Open: the index does not change, and data files are opened under a lock.
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

  // Opens the checkpoint and reads its index. NotFound if there is no index with that prefix. `env`
  // must outlive the reader. Data files are opened when they are needed.
  static StatusOr<std::unique_ptr<BundleReader>> Open(Env& env, std::string prefix);

  // Returns the status that Open would return for an index with these contents. Writers call this,
  // so that they never publish an index that readers reject.
  static Status CheckIndex(Env& env, string_view contents);

  int num_shards() const { return num_shards_; }
  // Returns the entries by tensor name. The slices of a sliced tensor are not among them.
  const Entries& tensors() const { return tensors_; }
  // Returns the entry of a tensor. NotFound "Key NAME not found in checkpoint" (client programs
  // depend on these words).
  StatusOr<const BundleEntry*> Find(string_view name) const;
  std::vector<std::string> names() const override;
  StatusOr<SavedTensor> Describe(string_view name) const override;

  // Returns the entry of one slice of a tensor. REQUIRES: the tensor's entry lists the slice.
  const BundleEntry& Slice(string_view name, const TensorSlice& slice) const;
  // Checks that every data file exists and is at least as long as the index says. Does not read the
  // contents.
  Status CheckDataFiles() const;

  StatusOr<Tensor> Read(string_view name, Allocator& allocator = CpuAllocator()) const;
  StatusOr<Tensor> ReadSlice(string_view name, const TensorSlice& slice,
                             Allocator& allocator = CpuAllocator()) const override;
  // Reads all bytes of a tensor and verifies its checksum.
  Status Verify(string_view name) const;

 private:
  // A part of a tensor: the elements in `box`, and the entry that says where their bytes are.
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
  // Returns the stored parts that overlap `box`; NotFound if together they do not cover it.
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

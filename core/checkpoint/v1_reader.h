// SPDX-License-Identifier: Apache-2.0
//
// V1Reader: reads a checkpoint of TensorFlow's first format (FORMAT.md): one table per file.
//
// Open reads each file's list of tensors. Reading a tensor reads the blocks that hold its slices.
// The reader verifies only the blocks that it reads.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/table.h"

namespace penstock {

class V1Reader final : public CheckpointReader {
 public:
  static constexpr int kAllFiles = -1;

  // Opens the files that match `pattern`. If `file` is not kAllFiles, and there is a file with this
  // number in sorted order, opens only that one. NotFound if no file matches.
  static StatusOr<std::unique_ptr<V1Reader>> Open(Env& env, const std::string& pattern,
                                                  int file = kAllFiles);

  std::vector<std::string> names() const override;
  StatusOr<SavedTensor> Describe(string_view name) const override;
  StatusOr<Tensor> ReadSlice(string_view name, const TensorSlice& slice,
                             Allocator& allocator = CpuAllocator()) const override;

 private:
  struct File {
    std::unique_ptr<RandomAccessFile> bytes;
    Table table;
  };
  struct Part {
    TensorSlice slice;  // as it was saved, because the table's key contains it
    TensorSlice box;
    const File* file;
  };
  struct Entry : SavedTensor {
    std::vector<Part> parts;
  };

  explicit V1Reader(std::string pattern) : CheckpointReader(std::move(pattern)) {}
  Status AddFile(Env& env, const std::string& path);
  Status AddTensors(const File& file, string_view list);
  StatusOr<const Entry*> Find(string_view name) const;
  StatusOr<Tensor> Read(string_view name, const Entry& entry, const TensorSlice& slice,
                        Allocator& allocator) const;
  StatusOr<std::vector<const Part*>> PartsOf(const Entry& entry, const TensorSlice& box) const;
  StatusOr<Tensor> ReadPart(string_view name, const Entry& entry, const Part& part,
                            Allocator& allocator) const;

  std::vector<std::unique_ptr<const File>> files_;
  int64_t bytes_ = 0;  // size of all files
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace penstock

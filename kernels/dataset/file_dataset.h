// SPDX-License-Identifier: Apache-2.0
//
// FileDataset: the pieces (lines, records) of files, one file after the other. Each file format has
// its own FilePieces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/record/compression.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {

// Reads the pieces of one file. One caller at a time.
class FilePieces {
 public:
  virtual ~FilePieces() = default;
  // Reads the next piece. Returns false at the end of the file.
  virtual StatusOr<bool> Read(std::string* piece) = 0;
  // Returns the offset of the next piece, which can be passed to OpenPieces.
  virtual int64_t offset() const = 0;
};

// Opens a file at an offset that offset() returned before, or at 0.
using OpenPieces = std::function<StatusOr<std::unique_ptr<FilePieces>>(
    Env& env, const std::string& path, int64_t offset)>;

// Returns a dataset of scalar strings. `offsets` says where to start in each file; if empty, at the
// beginning.
DatasetPtr NewFileDataset(const char* name, std::vector<std::string> files,
                          std::vector<int64_t> offsets, OpenPieces open);

// Returns the paths in input `i`. InvalidArgument unless it is a scalar or a vector.
StatusOr<std::vector<std::string>> FilesInput(const KernelContext& ctx, int i);
// Returns the compression that input `i` (compression_type) names. InvalidArgument if there is none
// of that name.
StatusOr<Compression> CompressionInput(const KernelContext& ctx, int i);
// InvalidArgument unless input `i` (buffer_size) is at least `min`. The value is not used, because
// files are read in blocks of a fixed size.
Status CheckBufferSize(const KernelContext& ctx, int i, int64_t min = 0);

}  // namespace penstock

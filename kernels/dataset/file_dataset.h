// SPDX-License-Identifier: Apache-2.0
//
// FileDataset: the pieces (lines, records) of files, one file after the other. Each kind of file
// gives a FilePieces.
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
  // False: the file has ended.
  virtual StatusOr<bool> Read(std::string* piece) = 0;
  // The offset of the next piece, for the `offset` of an opener.
  virtual int64_t offset() const = 0;
};

// Opens a file to be read from an offset that its offset() once returned, or from 0.
using OpenPieces = std::function<StatusOr<std::unique_ptr<FilePieces>>(
    Env& env, const std::string& path, int64_t offset)>;

// A dataset of scalar strings. `offsets`: where each file is read from; empty: the beginning.
DatasetPtr NewFileDataset(const char* name, std::vector<std::string> files,
                          std::vector<int64_t> offsets, OpenPieces open);

// Input `i`: paths, a scalar or a vector.
StatusOr<std::vector<std::string>> FilesInput(const KernelContext& ctx, int i);
// Input `i`: compression_type.
StatusOr<Compression> CompressionInput(const KernelContext& ctx, int i);
// Input `i`: buffer_size, which is checked to be at least `min`; files are read in blocks of our
// own size.
Status CheckBufferSize(const KernelContext& ctx, int i, int64_t min = 0);

}  // namespace penstock

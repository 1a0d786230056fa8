// SPDX-License-Identifier: Apache-2.0
//
// The file of a graph that is too large for one GraphDef: the line "PenstockGraph 1", then pieces,
// each with its length (8 bytes) and checksum (4 bytes, masked CRC-32C), both little-endian. A
// piece is a serialized GraphDef (graph_pieces.h). Private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

Status WritePieceFileHeader(WritableFile& file);
Status WritePiece(string_view bytes, WritableFile& file);

class PieceFileReader {
 public:
  // Returns null if the file does not begin with the header of such a file.
  static StatusOr<std::unique_ptr<PieceFileReader>> Open(Env& env, const std::string& path);

  // Reads the next piece. DataLoss if the file is damaged, or has no more pieces.
  Status Read(std::string* bytes);
  int64_t size() const { return file_->size(); }  // bytes of the file
  bool at_end() const { return offset_ == file_->size(); }

 private:
  explicit PieceFileReader(std::unique_ptr<RandomAccessFile> file);

  const std::unique_ptr<RandomAccessFile> file_;
  int64_t offset_;
};

}  // namespace penstock

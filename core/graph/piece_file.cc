// SPDX-License-Identifier: Apache-2.0
#include "core/graph/piece_file.h"

#include "core/base/crc32c.h"
#include "core/base/little_endian.h"

namespace penstock {
namespace {

constexpr string_view kHeader = "PenstockGraph 1\n";
constexpr int64_t kLengthBytes = sizeof(uint64_t);
constexpr int64_t kHeadBytes = kLengthBytes + sizeof(uint32_t);  // length and checksum of a piece

}  // namespace

Status WritePieceFileHeader(WritableFile& file) { return file.Append(kHeader); }

Status WritePiece(string_view bytes, WritableFile& file) {
  char head[kHeadBytes];
  PutLittleEndian<uint64_t>(bytes.size(), head);
  PutLittleEndian(MaskCrc(Crc32c(bytes)), head + kLengthBytes);
  RETURN_IF_ERROR(file.Append({head, kHeadBytes}));
  return file.Append(bytes);
}

PieceFileReader::PieceFileReader(std::unique_ptr<RandomAccessFile> file)
    : file_(std::move(file)), offset_(kHeader.size()) {}

StatusOr<std::unique_ptr<PieceFileReader>> PieceFileReader::Open(Env& env,
                                                                 const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, env.OpenFile(path));
  std::string header(kHeader.size(), '\0');
  if (file->size() < static_cast<int64_t>(header.size())) return nullptr;
  RETURN_IF_ERROR(file->Read(0, static_cast<int64_t>(header.size()), header.data()));
  if (header != kHeader) return nullptr;
  return std::unique_ptr<PieceFileReader>(new PieceFileReader(std::move(file)));
}

Status PieceFileReader::Read(std::string* bytes) {
  char head[kHeadBytes];
  if (file_->size() - offset_ < kHeadBytes) return DataLoss("the file ends before its graph");
  RETURN_IF_ERROR(file_->Read(offset_, kHeadBytes, head));
  const uint64_t length = LittleEndian<uint64_t>(head);
  const int64_t left = file_->size() - offset_ - kHeadBytes;
  if (length > INT32_MAX || static_cast<int64_t>(length) > left) {
    return DataLoss("a piece of ", length, " bytes at byte ", offset_, "; the file has ", left,
                    " more");
  }
  bytes->resize(length);
  RETURN_IF_ERROR(file_->Read(offset_ + kHeadBytes, static_cast<int64_t>(length), bytes->data()));
  if (MaskCrc(Crc32c(*bytes)) != LittleEndian<uint32_t>(head + kLengthBytes)) {
    return DataLoss("the piece at byte ", offset_, " has a wrong checksum");
  }
  offset_ += kHeadBytes + static_cast<int64_t>(length);
  return OkStatus();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/graph/piece_file.h"

#include "core/base/crc32c.h"

namespace penstock {
namespace {

constexpr string_view kHeader = "PenstockGraph 1\n";
constexpr int64_t kHeadBytes = 12;  // length and checksum of a piece

void AppendLittleEndian(uint64_t value, int count, std::string* bytes) {
  for (int i = 0; i < count; ++i) bytes->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t ReadLittleEndian(const char* bytes, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

}  // namespace

Status WritePieceFileHeader(WritableFile& file) { return file.Append(kHeader); }

Status WritePiece(string_view bytes, WritableFile& file) {
  std::string head;
  AppendLittleEndian(bytes.size(), 8, &head);
  AppendLittleEndian(MaskCrc(Crc32c(bytes)), 4, &head);
  RETURN_IF_ERROR(file.Append(head));
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
  const uint64_t length = ReadLittleEndian(head, 8);
  const int64_t left = file_->size() - offset_ - kHeadBytes;
  if (length > INT32_MAX || static_cast<int64_t>(length) > left) {
    return DataLoss("a piece of ", length, " bytes at byte ", offset_, "; the file has ", left,
                    " more");
  }
  bytes->resize(length);
  RETURN_IF_ERROR(file_->Read(offset_ + kHeadBytes, static_cast<int64_t>(length), bytes->data()));
  if (MaskCrc(Crc32c(*bytes)) != ReadLittleEndian(head + 8, 4)) {
    return DataLoss("the piece at byte ", offset_, " has a wrong checksum");
  }
  offset_ += kHeadBytes + static_cast<int64_t>(length);
  return OkStatus();
}

}  // namespace penstock

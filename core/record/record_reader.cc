// SPDX-License-Identifier: Apache-2.0
#include "core/record/record_reader.h"

#include <utility>

#include "core/record/record_format.h"

namespace penstock {

StatusOr<RecordReader> RecordReader::Open(Env& env, const std::string& path,
                                          Compression compression) {
  ASSIGN_OR_RETURN(std::unique_ptr<InputStream> stream, InputStream::Open(env, path, compression));
  return RecordReader(std::move(stream));
}

Status RecordReader::Damaged(int64_t record_offset, string_view why) {
  return error_ =
             DataLoss("'", stream_->path(), "': the record at offset ", record_offset, " ", why);
}

Status RecordReader::ReadChecked(int64_t count, int64_t record_offset, string_view what,
                                 std::string* bytes) {
  RETURN_IF_ERROR(error_);
  RETURN_IF_ERROR(stream_->Read(count + kChecksumBytes, bytes));
  if (bytes->empty() && stream_->offset() == record_offset) return OkStatus();
  if (static_cast<int64_t>(bytes->size()) < count + kChecksumBytes) {
    return Damaged(record_offset, "is cut off by the end of the file");
  }
  const uint32_t checksum = LittleEndian<uint32_t>(bytes->data() + count);
  bytes->resize(count);
  if (UnmaskCrc(checksum) == Crc32c(*bytes)) return OkStatus();
  return Damaged(record_offset, StrCat("is damaged: the checksum of its ", what, " is wrong"));
}

StatusOr<bool> RecordReader::Read(std::string* record) {
  const int64_t start = offset();
  RETURN_IF_ERROR(ReadChecked(kLengthBytes, start, "length", &header_));
  if (header_.empty()) return false;
  const uint64_t length = LittleEndian<uint64_t>(header_.data());
  if (length > uint64_t{InputStream::kMaxRecordBytes}) {
    return Damaged(start, StrCat("claims ", length, " bytes; at most ",
                                 InputStream::kMaxRecordBytes, " are read"));
  }
  RETURN_IF_ERROR(ReadChecked(static_cast<int64_t>(length), start, "data", record));
  return true;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// RecordReader: reads the records of one TFRecord file (FORMAT.md), one after the other.
//
// The reader verifies a record's checksums before it returns the record: a flipped bit is a
// DataLoss, which names file and offset. After an error, every call returns this error. The reader
// allocates memory in proportion to the bytes that the file really has, not to the length that a
// record states. One owner at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/record/input_stream.h"

namespace penstock {

class RecordReader {
 public:
  static StatusOr<RecordReader> Open(Env& env, const std::string& path,
                                     Compression compression = Compression::kNone);

  // Returns the offset of the next record, in the file or in its decompressed contents.
  int64_t offset() const { return stream_->offset(); }
  // Skips to an `offset` that an earlier reader of the same file returned. Call this before the
  // first Read.
  Status SkipTo(int64_t offset) { return stream_->Skip(offset); }

  // Reads the next record; returns false at the end of the file.
  StatusOr<bool> Read(std::string* record);

 private:
  explicit RecordReader(std::unique_ptr<InputStream> stream) : stream_(std::move(stream)) {}
  // Reads `count` bytes and the checksum that follows them; DataLoss if it is wrong. Leaves
  // `*bytes` empty if the file ends at `record_offset`.
  Status ReadChecked(int64_t count, int64_t record_offset, string_view what, std::string* bytes);
  Status Damaged(int64_t record_offset, string_view why);

  std::unique_ptr<InputStream> stream_;
  std::string header_;
  Status error_;
};

}  // namespace penstock

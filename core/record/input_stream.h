// SPDX-License-Identifier: Apache-2.0
//
// InputStream: reads the bytes of one file from its beginning to its end, decompresses them, and
// reads ahead in blocks.
//
// Offsets count decompressed bytes. A stream allocates memory in proportion to the bytes that the
// file really has, not to the lengths that records state. Errors name the file and the offset up to
// which the data were good. After an error, every call returns this error: DataLoss if the
// compressed data are damaged, ResourceExhausted if there is not enough memory. One owner at a
// time. Borrows nothing once it is open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/record/compression.h"

namespace penstock {

class InputStream {
 public:
  // The largest record or line, in bytes; longer ones are errors, because a small compressed file
  // may contain a very long one.
  static constexpr int64_t kMaxRecordBytes = (int64_t{1} << 31) - 1;

  static StatusOr<std::unique_ptr<InputStream>> Open(Env& env, const std::string& path,
                                                     Compression compression);
  virtual ~InputStream() = default;

  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }  // the offset of the next byte

  // Replaces `*bytes` by the next `count` bytes; by fewer only at the end of the file.
  Status Read(int64_t count, std::string* bytes);
  // Reads the next line without its end ("\n" or "\r\n"); the last line need not have one. Returns
  // false at the end of the file.
  StatusOr<bool> ReadLine(std::string* line);
  // Skips `count` bytes; OutOfRange if the file ends earlier.
  Status Skip(int64_t count);

 protected:
  explicit InputStream(std::string path);

  // Fills `buffer` with the next 1 to `capacity` bytes; returns their number, 0 at the end.
  virtual StatusOr<int64_t> Fill(char* buffer, int64_t capacity) = 0;
  // Skips up to `count` bytes that Fill has not returned yet. Returns the number of bytes skipped.
  virtual StatusOr<int64_t> SkipUnread(int64_t count) { return 0; }

 private:
  // Ensures that the buffer has at least one byte, unless the file ends.
  Status Refill();
  int64_t buffered() const { return end_ - begin_; }
  // Appends the next `count` bytes; ResourceExhausted if there is not enough memory for them.
  Status TakeBuffered(int64_t count, std::string* bytes);
  // Adds the file and the offset to an error.
  Status WithPosition(const Status& why) const;

  const std::string path_;
  const std::unique_ptr<char[]> buffer_;
  int64_t begin_ = 0, end_ = 0;  // the unread bytes of buffer_
  int64_t offset_ = 0;
  Status error_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// InputStream: the bytes of one file from its beginning to its end, decompressed on the way and
// read ahead in blocks.
//
// Offsets count decompressed bytes. Whatever a file claims, memory grows only with bytes that are
// there. Errors name the file, and the offset up to which the data were good; damaged compression
// is DataLoss, too little memory ResourceExhausted, and both are sticky. One owner at a time.
// Borrows nothing once it is open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/record/compression.h"

namespace penstock {

class InputStream {
 public:
  // Records and lines longer than this are refused: a small compressed file may be a very long one.
  static constexpr int64_t kPieceBytesMax = (int64_t{1} << 31) - 1;

  static StatusOr<std::unique_ptr<InputStream>> Open(Env& env, const std::string& path,
                                                     Compression compression);
  virtual ~InputStream() = default;

  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }  // of the next byte

  // Replaces `*bytes` by the next `count`; by fewer only where the file ends before.
  Status Read(int64_t count, std::string* bytes);
  // The next line without its end ("\n" or "\r\n"); the last one need not have one. False at the
  // end of the file.
  StatusOr<bool> ReadLine(std::string* line);
  // Leaves `count` bytes out; OutOfRange where the file ends before.
  Status Skip(int64_t count);

 protected:
  explicit InputStream(std::string path);

  // Fills `buffer` with 1 to `capacity` next bytes; 0: the end.
  virtual StatusOr<int64_t> Fill(char* buffer, int64_t capacity) = 0;
  // Leaves out up to `count` bytes that were not Filled yet; how many.
  virtual StatusOr<int64_t> SkipUnread(int64_t count) { return 0; }

 private:
  // Has at least one byte in the buffer, unless the file ends.
  Status Refill();
  int64_t buffered() const { return end_ - begin_; }
  // Appends; ResourceExhausted where there is no memory for it.
  Status Take(int64_t count, std::string* bytes);
  // Says where it happened.
  Status At(const Status& why) const;

  const std::string path_;
  const std::unique_ptr<char[]> buffer_;
  int64_t begin_ = 0, end_ = 0;  // of what is unread in buffer_
  int64_t offset_ = 0;
  Status error_;
};

}  // namespace penstock

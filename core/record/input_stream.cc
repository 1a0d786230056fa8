// SPDX-License-Identifier: Apache-2.0
#include "core/record/input_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/guarded.h"

namespace penstock {
namespace {

constexpr int64_t kReadBytes = 256 << 10;

class PlainStream final : public InputStream {
 public:
  PlainStream(std::string path, std::unique_ptr<RandomAccessFile> file)
      : InputStream(std::move(path)), file_(std::move(file)) {}

  StatusOr<int64_t> Fill(char* buffer, int64_t capacity) override {
    const int64_t count = std::min(capacity, file_->size() - position_);
    if (count > 0) RETURN_IF_ERROR(file_->Read(position_, count, buffer));
    position_ += count;
    return count;
  }
  StatusOr<int64_t> SkipUnread(int64_t count) override {
    count = std::min(count, file_->size() - position_);
    position_ += count;
    return count;
  }

 private:
  const std::unique_ptr<RandomAccessFile> file_;
  int64_t position_ = 0;
};

class InflatingStream final : public InputStream {
 public:
  InflatingStream(std::string path, std::unique_ptr<RandomAccessFile> file, bool gzip)
      : InputStream(path), file_(std::move(path), std::move(file)), gzip_(gzip) {
    // zlib's window is 32 KiB; adding 16 makes it parse gzip's header and trailer.
    CHECK(inflateInit2(&zlib_, MAX_WBITS + (gzip ? 16 : 0)) == Z_OK);
  }
  ~InflatingStream() override { inflateEnd(&zlib_); }

  StatusOr<int64_t> Fill(char* buffer, int64_t capacity) override {
    zlib_.next_out = reinterpret_cast<Bytef*>(buffer);
    zlib_.avail_out = static_cast<uInt>(capacity);
    while (zlib_.avail_out == capacity) {
      RETURN_IF_ERROR(ReadCompressed());
      if (zlib_.avail_in == 0) {
        if (ended_) return 0;
        return DataLoss("the compressed data end early");
      }
      if (std::exchange(ended_, false) && (!gzip_ || inflateReset(&zlib_) != Z_OK)) {
        return DataLoss("there are bytes after the end of the compressed data");
      }
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      ended_ = result == Z_STREAM_END;
      if (result != Z_OK && result != Z_STREAM_END) {
        return DataLoss("not valid compressed data",
                        zlib_.msg == nullptr ? "" : StrCat(" (", zlib_.msg, ")"));
      }
    }
    return capacity - zlib_.avail_out;
  }

 private:
  Status ReadCompressed() {
    if (zlib_.avail_in > 0) return OkStatus();
    ASSIGN_OR_RETURN(const int64_t count, file_.Fill(compressed_.get(), kReadBytes));
    zlib_.next_in = reinterpret_cast<Bytef*>(compressed_.get());
    zlib_.avail_in = static_cast<uInt>(count);
    return OkStatus();
  }

  PlainStream file_;
  const bool gzip_;  // a gzip file may consist of several gzip streams
  bool ended_ = false;
  z_stream zlib_ = {};
  const std::unique_ptr<char[]> compressed_ = std::make_unique<char[]>(kReadBytes);
};

}  // namespace

StatusOr<std::unique_ptr<InputStream>> InputStream::Open(Env& env, const std::string& path,
                                                         Compression compression) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, env.OpenFile(path));
  std::unique_ptr<InputStream> stream;
  if (compression == Compression::kNone) {
    stream = std::make_unique<PlainStream>(path, std::move(file));
  } else {
    const bool gzip = compression == Compression::kGzip;
    stream = std::make_unique<InflatingStream>(path, std::move(file), gzip);
  }
  return stream;
}

InputStream::InputStream(std::string path)
    : path_(std::move(path)), buffer_(std::make_unique<char[]>(kReadBytes)) {}

Status InputStream::WithPosition(const Status& why) const {
  return Annotate(why, StrCat("'", path_, "' at offset ", offset_));
}

Status InputStream::Refill() {
  RETURN_IF_ERROR(error_);
  if (buffered() > 0) return OkStatus();
  const auto filled = Fill(buffer_.get(), kReadBytes);
  if (!filled.ok()) return error_ = WithPosition(filled.status());
  begin_ = 0;
  end_ = *filled;
  return OkStatus();
}

Status InputStream::TakeBuffered(int64_t count, std::string* bytes) {
  const Status taken = Guarded([&] {
    bytes->append(buffer_.get() + begin_, count);
    return OkStatus();
  });
  if (!taken.ok()) return error_ = WithPosition(taken);
  begin_ += count;
  offset_ += count;
  return OkStatus();
}

Status InputStream::Read(int64_t count, std::string* bytes) {
  bytes->clear();
  while (count > 0) {
    RETURN_IF_ERROR(Refill());
    const int64_t take = std::min(count, buffered());
    if (take == 0) break;
    RETURN_IF_ERROR(TakeBuffered(take, bytes));
    count -= take;
  }
  return OkStatus();
}

StatusOr<bool> InputStream::ReadLine(std::string* line) {
  line->clear();
  for (;;) {
    RETURN_IF_ERROR(Refill());
    if (buffered() == 0) {
      if (line->empty()) return false;
      break;
    }
    const char* const begin = buffer_.get() + begin_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', buffered()));
    RETURN_IF_ERROR(TakeBuffered(end == nullptr ? buffered() : end - begin, line));
    if (end != nullptr) {
      ++begin_;
      ++offset_;
      break;
    }
    if (static_cast<int64_t>(line->size()) > kMaxRecordBytes) {
      return error_ = DataLoss("'", path_, "' has a line of more than ", kMaxRecordBytes,
                               " bytes, which ends after offset ", offset_);
    }
  }
  if (!line->empty() && line->back() == '\r') line->pop_back();
  return true;
}

Status InputStream::Skip(int64_t count) {
  while (count > 0) {
    RETURN_IF_ERROR(error_);
    int64_t skipped = std::min(count, buffered());
    begin_ += skipped;
    if (skipped == 0) {
      ASSIGN_OR_RETURN(skipped, SkipUnread(count));
    }
    offset_ += skipped;
    count -= skipped;
    if (skipped > 0) continue;
    RETURN_IF_ERROR(Refill());
    if (buffered() == 0) return OutOfRange("'", path_, "' ends at offset ", offset_);
  }
  return OkStatus();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/record/record_writer.h"

#include <zlib.h>

#include <utility>

#include "core/base/check.h"
#include "core/record/record_format.h"

namespace penstock {
namespace {

constexpr size_t kBlockBytes = 256 << 10;

class PlainWriter final : public RecordWriter {
 public:
  explicit PlainWriter(std::unique_ptr<WritableFile> file) : RecordWriter(std::move(file)) {}

 private:
  Status Emit(std::string* bytes, Until until) override {
    const Status appended = file_->Append(*bytes);
    bytes->clear();
    return appended;
  }
};

class DeflatingWriter final : public RecordWriter {
 public:
  DeflatingWriter(std::unique_ptr<WritableFile> file, bool gzip) : RecordWriter(std::move(file)) {
    constexpr int kMemoryLevel = 9;  // as in TensorFlow
    CHECK(deflateInit2(&zlib_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + (gzip ? 16 : 0),
                       kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK);
  }
  ~DeflatingWriter() override { deflateEnd(&zlib_); }

 private:
  Status Emit(std::string* bytes, Until until) override {
    string_view left = *bytes;
    do {  // zlib's counters have 32 bits
      const string_view piece = left.substr(0, size_t{1} << 30);
      left.remove_prefix(piece.size());
      RETURN_IF_ERROR(Deflate(piece, left.empty() ? until : Until::kBlock));
    } while (!left.empty());
    bytes->clear();
    return OkStatus();
  }

  Status Deflate(string_view piece, Until until) {
    const int flush = until == Until::kBlock   ? Z_NO_FLUSH
                      : until == Until::kFlush ? Z_SYNC_FLUSH
                                               : Z_FINISH;
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    zlib_.avail_in = static_cast<uInt>(piece.size());
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(compressed_.get());
      zlib_.avail_out = kBlockBytes;
      CHECK(deflate(&zlib_, flush) != Z_STREAM_ERROR);
      RETURN_IF_ERROR(file_->Append(string_view(compressed_.get(), kBlockBytes - zlib_.avail_out)));
    } while (zlib_.avail_out == 0);
    return OkStatus();
  }

  z_stream zlib_ = {};
  const std::unique_ptr<char[]> compressed_ = std::make_unique<char[]>(kBlockBytes);
};

}  // namespace

StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(Env& env, const std::string& path,
                                                             Compression compression) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, env.NewWritableFile(path));
  std::unique_ptr<RecordWriter> writer;
  if (compression == Compression::kNone) {
    writer = std::make_unique<PlainWriter>(std::move(file));
  } else {
    writer = std::make_unique<DeflatingWriter>(std::move(file), compression == Compression::kGzip);
  }
  return writer;
}

Status RecordWriter::Write(string_view record) {
  RETURN_IF_ERROR(error_);
  char header[kLengthBytes + kChecksumBytes];
  PutLittleEndian<uint64_t>(record.size(), header);
  PutLittleEndian(MaskCrc(Crc32c({header, kLengthBytes})), header + kLengthBytes);
  char footer[kChecksumBytes];
  PutLittleEndian(MaskCrc(Crc32c(record)), footer);
  pending_.append(header, sizeof(header));
  pending_.append(record.data(), record.size());
  pending_.append(footer, sizeof(footer));
  return pending_.size() < kBlockBytes ? OkStatus() : EmitPending(Until::kBlock);
}

Status RecordWriter::EmitPending(Until until) {
  if (error_.ok()) error_ = Emit(&pending_, until);
  return error_;
}

Status RecordWriter::Flush() { return EmitPending(Until::kFlush); }

Status RecordWriter::Close() {
  const Status emitted = EmitPending(Until::kEnd);
  const Status closed = file_->Close();
  error_ = FailedPrecondition("the file of records is closed");
  return emitted.ok() ? closed : emitted;
}

}  // namespace penstock

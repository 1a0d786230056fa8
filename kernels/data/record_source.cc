// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/record_source.h"

#include <algorithm>
#include <utility>

#include "core/record/input_stream.h"
#include "core/record/record_reader.h"
#include "core/tensor/memory_account.h"

namespace penstock {
namespace {

using Made = StatusOr<std::unique_ptr<RecordSource>>;

// A source with exactly one record.
class OneRecordSource final : public RecordSource {
 public:
  OneRecordSource(Env* env, std::string work) : env_(env), work_(std::move(work)) {}

  StatusOr<SearchResult> Next(Record* record) override {
    if (done_) return SearchResult::kNothing;
    record->key = work_;
    if (env_ == nullptr) {
      record->value = work_;
    } else {
      ASSIGN_OR_RETURN(const auto file, env_->OpenFile(work_));
      const int64_t available = MemoryAccount::Task().available();
      if (file->size() > available) {
        return ResourceExhausted("file '", work_, "' has ", file->size(),
                                 " bytes, and this task (--memory_limit) has ", available, " left");
      }
      ASSIGN_OR_RETURN(record->value, env_->ReadFile(work_));
    }
    done_ = true;
    return SearchResult::kLastRecord;
  }
  Position position() const override { return {.records = done_ ? 1 : 0}; }
  Status SkipTo(const Position& position) override {
    done_ = position.records > 0;
    return OkStatus();
  }

 private:
  Env* const env_;  // opens the file; null if the value of the record is the name of the work
  const std::string work_;
  bool done_ = false;
};

class LineSource final : public RecordSource {
 public:
  LineSource(std::unique_ptr<InputStream> stream, int64_t skip)
      : stream_(std::move(stream)), skip_(skip) {}

  StatusOr<SearchResult> Next(Record* record) override {
    do {
      ASSIGN_OR_RETURN(const bool found, stream_->ReadLine(&record->value));
      if (!found) return SearchResult::kNothing;
    } while (++lines_ <= skip_);
    record->key = StrCat(stream_->path(), ":", lines_);
    return SearchResult::kRecord;
  }
  Position position() const override { return {stream_->offset(), lines_}; }
  Status SkipTo(const Position& position) override {
    lines_ = position.records;
    return stream_->Skip(position.offset);
  }

 private:
  const std::unique_ptr<InputStream> stream_;
  const int64_t skip_;
  int64_t lines_ = 0;
};

class FramedSource final : public RecordSource {
 public:
  FramedSource(std::string path, RecordReader reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  StatusOr<SearchResult> Next(Record* record) override {
    const int64_t offset = reader_.offset();
    ASSIGN_OR_RETURN(const bool found, reader_.Read(&record->value));
    if (!found) return SearchResult::kNothing;
    ++records_;
    record->key = StrCat(path_, ":", offset);
    return SearchResult::kRecord;
  }
  Position position() const override { return {reader_.offset(), records_}; }
  Status SkipTo(const Position& position) override {
    records_ = position.records;
    return reader_.SkipTo(position.offset);
  }

 private:
  const std::string path_;
  RecordReader reader_;
  int64_t records_ = 0;
};

class FixedSource final : public RecordSource {
 public:
  FixedSource(std::unique_ptr<InputStream> stream, const FixedLength& format)
      : stream_(std::move(stream)), format_(format), gap_(format.header) {}

  StatusOr<SearchResult> Next(Record* record) override {
    RETURN_IF_ERROR(DropGap());
    // The last record must be followed by at least as many bytes as the footer has.
    const int64_t wanted = format_.record + format_.footer;
    std::string more;
    RETURN_IF_ERROR(stream_->Read(wanted - size(), &more));
    window_ += more;
    if (size() < wanted) return SearchResult::kNothing;
    record->value = window_.substr(0, format_.record);
    record->key = StrCat(stream_->path(), ":", records_++);
    gap_ = format_.hop > 0 ? format_.hop : format_.record;
    return SearchResult::kRecord;
  }
  Position position() const override { return {stream_->offset() - size() + gap_, records_}; }
  Status SkipTo(const Position& position) override {
    gap_ = position.offset;
    records_ = position.records;
    return OkStatus();
  }

 private:
  int64_t size() const { return static_cast<int64_t>(window_.size()); }
  // Moves to the start of the next record.
  Status DropGap() {
    const int64_t held = std::min(gap_, size());
    window_.erase(0, held);
    const Status skipped = stream_->Skip(gap_ - held);
    gap_ = 0;
    return skipped.code() == StatusCode::kOutOfRange ? OkStatus() : skipped;
  }

  const std::unique_ptr<InputStream> stream_;
  const FixedLength format_;
  std::string window_;  // read ahead
  int64_t gap_;         // between the start of the window and the next record
  int64_t records_ = 0;
};

}  // namespace

OpenSource IdentitySource() {
  return [](Env& env, const std::string& work) -> Made {
    return std::make_unique<OneRecordSource>(nullptr, work);
  };
}

OpenSource WholeFileSource() {
  return [](Env& env, const std::string& work) -> Made {
    return std::make_unique<OneRecordSource>(&env, work);
  };
}

OpenSource TextLineSource(int64_t skip_lines) {
  return [skip_lines](Env& env, const std::string& work) -> Made {
    ASSIGN_OR_RETURN(auto stream, InputStream::Open(env, work, Compression::kNone));
    return std::make_unique<LineSource>(std::move(stream), skip_lines);
  };
}

OpenSource TFRecordSource(Compression compression) {
  return [compression](Env& env, const std::string& work) -> Made {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(env, work, compression));
    return std::make_unique<FramedSource>(work, std::move(reader));
  };
}

OpenSource FixedLengthSource(const FixedLength& format) {
  return [format](Env& env, const std::string& work) -> Made {
    ASSIGN_OR_RETURN(auto stream, InputStream::Open(env, work, format.compression));
    return std::make_unique<FixedSource>(std::move(stream), format);
  };
}

}  // namespace penstock

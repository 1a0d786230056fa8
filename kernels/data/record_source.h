// SPDX-License-Identifier: Apache-2.0
//
// RecordSource: the records of one unit of work of a reader, mostly of one file.
//
// Used by one thread at a time. Errors name the file; after an error, every call returns it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/record/compression.h"

namespace penstock {

class RecordSource {
 public:
  struct Record {
    std::string key, value;
  };
  // The result of a search: a record, a record that is known to be the last one, or the end.
  enum class SearchResult { kRecord, kLastRecord, kNothing };
  // The position at which the search for the next record starts.
  struct Position {
    int64_t offset = 0;   // in decompressed bytes
    int64_t records = 0;  // records, or lines, before this position
  };

  virtual ~RecordSource() = default;
  virtual StatusOr<SearchResult> Next(Record* record) = 0;
  virtual Position position() const = 0;
  // Moves to a position that a source of the same work had. Call it before the first Next.
  virtual Status SkipTo(const Position& position) = 0;
};

using OpenSource =
    std::function<StatusOr<std::unique_ptr<RecordSource>>(Env& env, const std::string& work)>;

// Reads one record, whose key and value are the name of the work.
OpenSource IdentitySource();
// Reads one record, the contents of the file.
OpenSource WholeFileSource();
// Reads lines; the key is "file:number", counted from 1.
OpenSource TextLineSource(int64_t skip_lines);
// Reads TFRecords; the key is "file:offset".
OpenSource TFRecordSource(Compression compression);

struct FixedLength {
  int64_t header = 0;  // all members are in bytes
  int64_t record = 0;
  int64_t footer = 0;
  int64_t hop = 0;  // distance between the starts of records; 0: the record size
  Compression compression = Compression::kNone;
};
// Reads records of equal length between a header and a footer; the key is "file:number", from 0.
OpenSource FixedLengthSource(const FixedLength& format);

}  // namespace penstock

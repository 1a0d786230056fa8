// SPDX-License-Identifier: Apache-2.0
//
// RecordSource: the records of one unit of work of a reader: mostly those of one file.
//
// One owner at a time. Errors name the file and are sticky.
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
  // kLastRecord: a record, and it is known that it is the last one.
  enum class Found { kRecord, kLastRecord, kNothing };
  // The place at which the next record is looked for.
  struct Position {
    int64_t offset = 0;   // in decompressed bytes
    int64_t records = 0;  // or lines: how many have been passed
  };

  virtual ~RecordSource() = default;
  virtual StatusOr<Found> Next(Record* record) = 0;
  virtual Position position() const = 0;
  // Goes to a position that another source of the same work stood at. Before the first Next.
  virtual Status SkipTo(const Position& position) = 0;
};

using OpenSource =
    std::function<StatusOr<std::unique_ptr<RecordSource>>(Env& env, const std::string& work)>;

// The work itself, as key and as value.
OpenSource IdentitySource();
// The contents of the file.
OpenSource WholeFileSource();
// Lines; the key is "file:number", counted from 1.
OpenSource TextLineSource(int64_t skip_lines);
// TFRecords; the key is "file:offset".
OpenSource TFRecordSource(Compression compression);

struct FixedLength {
  int64_t header = 0;  // these are in bytes
  int64_t record = 0;
  int64_t footer = 0;
  int64_t hop = 0;  // from the start of one record to that of the next; 0: a record
  Compression compression = Compression::kNone;
};
// Records of equal length between a header and a footer; the key is "file:number", from 0.
OpenSource FixedLengthSource(const FixedLength& format);

}  // namespace penstock

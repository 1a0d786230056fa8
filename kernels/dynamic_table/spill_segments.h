// SPDX-License-Identifier: Apache-2.0
//
// SpillSegments: files of one shard of a table, with rows for which there is no memory. A file
// ("segment") has records of equal size, and records are only appended. Its name is removed as soon
// as it is open, so the file disappears when the table or the process ends, even if the process
// crashes.
//
// A record is {int64 key, int32 number in the segment, uint32 masked CRC-32C of all the rest,
// float[]}, in the machine's byte order. The place of a record is the index of its segment times
// the records per segment, plus its number in the segment. For each record in use, an owner is kept
// in memory: a number that the caller chooses.
//
// Not thread-safe, but several threads may Read at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

class SpillSegments {
 public:
  struct Record {
    int32_t owner;
    int64_t key;
    const float* values;
  };

  // `floats`: the number of floats in a record. `segment_bytes`: the size of a file, at least one
  // record.
  SpillSegments(std::string directory, int64_t floats, int64_t segment_bytes);

  static int64_t RecordBytes(int64_t floats);

  // Appends records and returns their places; makes a file, and the directory, if necessary. If
  // that fails, none of the records is stored. The error names the directory; its code is that of
  // Env (ResourceExhausted: the disk is full).
  StatusOr<std::vector<int32_t>> Append(Env& env, absl::Span<const Record> records);
  // Reads the values of a record in use. DataLoss names the key and the directory if the file is
  // too short, or the record is not the one that was written.
  Status Read(int32_t place, int64_t key, float* values) const;
  // Frees a record. A full segment without records in use is closed, which frees the disk's blocks.
  void Free(int32_t place);
  void Clear();

  // Returns a full segment with fewer than half of its records in use, or -1 if there is none.
  int FindMostlyFree() const;
  // Returns the places of the records of a segment that are in use.
  std::vector<int32_t> PlacesOf(int segment) const;
  int32_t OwnerOf(int32_t place) const;
  // Makes FindMostlyFree skip this segment, which cannot be read, from now on.
  void KeepSegment(int segment) { segments_[segment].kept = true; }

  // Returns the size of all files.
  int64_t bytes() const;

 private:
  struct Segment {
    std::unique_ptr<WritableFile> writer;      // null if the segment is full
    std::unique_ptr<RandomAccessFile> reader;  // null if the segment is unused
    std::vector<int32_t> owners;               // by record; -1 if the record is free
    int64_t used = 0;
    bool kept = false;
  };

  Status Open(Env& env);
  Status AppendToOpen(absl::Span<const Record> records, std::vector<int32_t>* places);
  void Seal(int segment);
  void CloseIfFree(int segment);

  const std::string directory_;
  const int64_t floats_;
  const int64_t segment_records_;
  std::vector<Segment> segments_;
  int open_ = -1;  // the segment to which records are appended
};

}  // namespace penstock

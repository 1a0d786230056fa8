// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/spill_segments.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "core/base/crc32c.h"

namespace penstock {
namespace {

struct SpillRecordHeader {
  int64_t key;
  int32_t number;
  uint32_t crc;
};
static_assert(sizeof(SpillRecordHeader) == 16);

uint32_t SpillRecordCrc(const SpillRecordHeader& header, const char* values, int64_t bytes) {
  constexpr size_t kCovered = offsetof(SpillRecordHeader, crc);
  const auto* const start = static_cast<const char*>(static_cast<const void*>(&header));
  return MaskCrc(ExtendCrc32c(Crc32c({start, kCovered}), {values, static_cast<size_t>(bytes)}));
}

// Returns `status` with a text that names the contents of the file (rows for which there is no
// memory) and its directory.
Status SpillError(const Status& status, const std::string& directory) {
  return Annotate(
      status, StrCat("rows for which there is no memory, in spill_directory '", directory, "'"));
}

}  // namespace

SpillSegments::SpillSegments(std::string directory, int64_t floats, int64_t segment_bytes)
    : directory_(std::move(directory)),
      floats_(floats),
      segment_records_(std::max<int64_t>(1, segment_bytes / RecordBytes(floats))) {}

int64_t SpillSegments::RecordBytes(int64_t floats) {
  return static_cast<int64_t>(sizeof(SpillRecordHeader) + floats * sizeof(float));
}

StatusOr<std::vector<int32_t>> SpillSegments::Append(Env& env, absl::Span<const Record> records) {
  std::vector<int32_t> places;
  places.reserve(records.size());
  while (places.size() < records.size()) {
    Status done = open_ >= 0 ? OkStatus() : Open(env);
    if (done.ok()) done = AppendToOpen(records.subspan(places.size()), &places);
    if (done.ok()) continue;
    for (const int32_t place : places) Free(place);
    return SpillError(done, directory_);
  }
  return places;
}

// Makes a segment's file, and removes its name. ResourceExhausted if the shard has too many
// segments; else the error of Env.
Status SpillSegments::Open(Env& env) {
  const auto unused = std::find_if(segments_.begin(), segments_.end(),
                                   [](const Segment& each) { return each.reader == nullptr; });
  const int64_t number = unused - segments_.begin();
  if ((number + 1) * segment_records_ > std::numeric_limits<int32_t>::max()) {
    return ResourceExhausted("a shard of a table cannot have more than 2^31 rows on disk");
  }
  RETURN_IF_ERROR(env.CreateDirectories(directory_));
  const std::string path = StrCat(directory_, "/penstock-spill-", env.RandomU64());
  Segment made;
  ASSIGN_OR_RETURN(made.writer, env.NewWritableFile(path));
  auto reader = env.OpenFile(path);
  // Removes the file's name even if the file cannot be used, because no file may remain in the
  // directory.
  const Status removed = env.RemoveFile(path);
  RETURN_IF_ERROR(reader.status());
  RETURN_IF_ERROR(removed);
  made.reader = *std::move(reader);
  if (unused == segments_.end()) {
    segments_.push_back(std::move(made));
  } else {
    *unused = std::move(made);
  }
  open_ = static_cast<int>(number);
  return OkStatus();
}

// Appends records to the open segment in one write: as many as it has room for, and about 1 MiB at
// most. Adds their places to *places.
Status SpillSegments::AppendToOpen(absl::Span<const Record> records, std::vector<int32_t>* places) {
  constexpr int64_t kWriteBytes = 1 << 20;
  Segment& segment = segments_[open_];
  const int64_t first = std::ssize(segment.owners), record_bytes = RecordBytes(floats_);
  const int64_t count = std::min({std::ssize(records), segment_records_ - first,
                                  std::max<int64_t>(1, kWriteBytes / record_bytes)});
  const int64_t value_bytes = record_bytes - static_cast<int64_t>(sizeof(SpillRecordHeader));
  std::string bytes(count * record_bytes, '\0');
  for (int64_t i = 0; i < count; ++i) {
    char* const to = bytes.data() + i * record_bytes;
    char* const values = to + sizeof(SpillRecordHeader);
    SpillRecordHeader header = {records[i].key, static_cast<int32_t>(first + i), 0};
    std::memcpy(values, records[i].values, value_bytes);
    header.crc = SpillRecordCrc(header, values, value_bytes);
    std::memcpy(to, &header, sizeof header);
  }
  segment.owners.reserve(first + count);
  const Status written = segment.writer->Append(bytes);
  if (!written.ok()) {
    // The file may end with a part of a record, so no more records can be appended to it.
    Seal(open_);
    return written;
  }
  for (int64_t i = 0; i < count; ++i) {
    segment.owners.push_back(records[i].owner);
    places->push_back(static_cast<int32_t>(open_ * segment_records_ + first + i));
  }
  segment.used += count;
  if (std::ssize(segment.owners) == segment_records_) Seal(open_);
  return OkStatus();
}

void SpillSegments::Seal(int segment) {
  // Ignores an error of Close, because no process reads the file after a crash.
  segments_[segment].writer->Close().IgnoreError();
  segments_[segment].writer = nullptr;
  open_ = -1;
  CloseIfFree(segment);
}

void SpillSegments::CloseIfFree(int segment) {
  if (segment != open_ && segments_[segment].used == 0) segments_[segment] = Segment();
}

Status SpillSegments::Read(int32_t place, int64_t key, float* values) const {
  const int64_t number = place % segment_records_, record_bytes = RecordBytes(floats_);
  std::string bytes(record_bytes, '\0');
  const Status read = segments_[place / segment_records_].reader->Read(number * record_bytes,
                                                                       record_bytes, bytes.data());
  if (read.code() == StatusCode::kOutOfRange) {
    // Does not pass on OutOfRange, which means the end of the data to a training loop.
    return SpillError(DataLoss("the row of key ", key, " is missing: ", read.message()),
                      directory_);
  }
  if (!read.ok()) return SpillError(read, directory_);
  SpillRecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const char* const stored = bytes.data() + sizeof header;
  const int64_t value_bytes = record_bytes - static_cast<int64_t>(sizeof header);
  if (header.key != key || header.number != number ||
      header.crc != SpillRecordCrc(header, stored, value_bytes)) {
    return SpillError(DataLoss("the row of key ", key, " was damaged: its checksum is wrong"),
                      directory_);
  }
  std::memcpy(values, stored, value_bytes);
  return OkStatus();
}

void SpillSegments::Free(int32_t place) {
  const auto number = static_cast<int>(place / segment_records_);
  Segment& segment = segments_[number];
  segment.owners[place % segment_records_] = -1;
  --segment.used;
  CloseIfFree(number);
}

void SpillSegments::Clear() {
  segments_.clear();
  open_ = -1;
}

int SpillSegments::FindMostlyFree() const {
  for (int i = 0; i < std::ssize(segments_); ++i) {
    const Segment& each = segments_[i];
    const bool full = each.reader != nullptr && i != open_;
    if (full && !each.kept && 2 * each.used < std::ssize(each.owners)) return i;
  }
  return -1;
}

std::vector<int32_t> SpillSegments::PlacesOf(int segment) const {
  const std::vector<int32_t>& owners = segments_[segment].owners;
  std::vector<int32_t> places;
  for (int64_t i = 0; i < std::ssize(owners); ++i) {
    if (owners[i] >= 0) places.push_back(static_cast<int32_t>(segment * segment_records_ + i));
  }
  return places;
}

int32_t SpillSegments::OwnerOf(int32_t place) const {
  return segments_[place / segment_records_].owners[place % segment_records_];
}

int64_t SpillSegments::bytes() const {
  int64_t records = 0;
  for (const Segment& each : segments_) records += std::ssize(each.owners);
  return records * RecordBytes(floats_);
}

}  // namespace penstock

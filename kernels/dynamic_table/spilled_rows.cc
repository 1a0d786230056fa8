// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/spilled_rows.h"

#include <iterator>

namespace penstock {

SpilledRows::SpilledRows(const TableSpec& spec, Env& files, int64_t segment_bytes)
    : floats_(spec.floats()),
      files_(files),
      segments_(spec.spill_directory, spec.floats(), segment_bytes),
      headers_(0) {}

StatusOr<std::vector<int32_t>> SpilledRows::Add(Allocator& allocator, const RowBlocks& from,
                                                absl::Span<const int32_t> rows) {
  RETURN_IF_ERROR(headers_.Reserve(allocator, std::ssize(rows)));
  std::vector<int32_t> made;
  std::vector<SpillSegments::Record> records;
  for (const int32_t row : rows) {
    made.push_back(headers_.Take());
    headers_.header(made.back()) = from.header(row);
    records.push_back({made.back(), from.header(row).key, from.values(row)});
  }
  places_.resize(headers_.end());
  const auto places = segments_.Append(files_, records);
  if (!places.ok()) {
    for (const int32_t row : made) headers_.Release(row);
    return places.status();
  }
  for (size_t i = 0; i < made.size(); ++i) {
    places_[made[i]] = (*places)[i];
    order_.AddNewest(headers_, made[i]);
  }
  size_ += std::ssize(rows);
  return made;
}

Status SpilledRows::Read(int32_t row, float* values) const {
  return segments_.Read(places_[row], headers_.header(row).key, values);
}

void SpilledRows::Remove(int32_t row) {
  segments_.Free(places_[row]);
  order_.Remove(headers_, row);
  headers_.Release(row);
  --size_;
}

void SpilledRows::Clear() {
  segments_.Clear();
  headers_.Clear();
  places_.clear();
  order_.Clear();
  size_ = 0;
}

bool SpilledRows::Compact() {
  const int segment = segments_.FindMostlyFree();
  if (segment < 0) return false;
  const Status moved = Move(segment);
  // Gives up a segment only if a record is damaged: the error of a full disk may not occur again.
  if (moved.code() == StatusCode::kDataLoss) segments_.KeepSegment(segment);
  return moved.ok();
}

Status SpilledRows::Move(int segment) {
  const std::vector<int32_t> from = segments_.PlacesOf(segment);
  std::vector<float> values(from.size() * floats_);
  std::vector<SpillSegments::Record> records;
  for (size_t i = 0; i < from.size(); ++i) {
    const int32_t row = segments_.OwnerOf(from[i]);
    float* const to = values.data() + i * floats_;
    RETURN_IF_ERROR(Read(row, to));
    records.push_back({row, headers_.header(row).key, to});
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> places, segments_.Append(files_, records));
  for (size_t i = 0; i < from.size(); ++i) {
    places_[records[i].owner] = places[i];
    segments_.Free(from[i]);
  }
  return OkStatus();
}

}  // namespace penstock

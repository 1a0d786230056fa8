// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/loop/ring.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace penstock {

StatusOr<size_t> RingWriter::Room() {
  const uint64_t consumed = memory_.positions->consumed.load(std::memory_order_seq_cst);
  if (consumed < consumed_ || consumed > appended_) {
    return DataLoss("the reader of a shared ring is at byte ", consumed, " of ", appended_);
  }
  consumed_ = consumed;
  return memory_.bytes - static_cast<size_t>(appended_ - consumed_);
}

void RingWriter::Append(const void* bytes, size_t count) {
  CHECK(appended_ - consumed_ + count <= memory_.bytes);
  if (count == 0) return;
  const size_t at = static_cast<size_t>(appended_) & (memory_.bytes - 1);
  const size_t first = std::min(count, memory_.bytes - at);
  std::memcpy(memory_.data + at, bytes, first);
  std::memcpy(memory_.data, static_cast<const char*>(bytes) + first, count - first);
  appended_ += count;
}

StatusOr<size_t> RingReader::Readable() {
  const uint64_t published = memory_.positions->published.load(std::memory_order_seq_cst);
  if (published < read_ || published - read_ > memory_.bytes) {
    return DataLoss("the writer of a shared ring is at byte ", published, ", its reader at ",
                    read_);
  }
  return static_cast<size_t>(published - read_);
}

void RingReader::Read(void* to, size_t count) {
  const size_t at = static_cast<size_t>(read_) & (memory_.bytes - 1);
  const size_t first = std::min(count, memory_.bytes - at);
  if (to != nullptr && count > 0) {
    std::memcpy(to, memory_.data + at, first);
    std::memcpy(static_cast<char*>(to) + first, memory_.data, count - first);
  }
  read_ += count;
}

}  // namespace penstock

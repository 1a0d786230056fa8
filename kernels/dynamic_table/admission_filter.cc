// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/admission_filter.h"

#include <algorithm>
#include <bit>

namespace penstock {

AdmissionFilter::AdmissionFilter(int64_t admit_after, int64_t counters)
    : admit_after_(admit_after), size_(std::bit_ceil(static_cast<uint64_t>(counters))) {}

Status AdmissionFilter::Reserve(Allocator& allocator) {
  if (admit_after_ <= 1 || counters_ != nullptr) return OkStatus();
  ASSIGN_OR_RETURN(memory_, Tensor::Make(allocator, DType::kUint8, {static_cast<int64_t>(size_)}));
  counters_ = memory_.mutable_data<uint8_t>();
  std::fill_n(counters_, size_, 0);
  return OkStatus();
}

bool AdmissionFilter::Admit(uint64_t hash) {
  if (admit_after_ <= 1) return true;
  // Mixes the bits again, because some bits of the hash already chose the shard and the part.
  hash *= 0xD6E8FEB86659FD93u;
  hash ^= hash >> 32;
  int64_t least = kCountMax;
  for (int i = 0; i < kHashes; ++i) least = std::min<int64_t>(least, Counter(hash, i));
  if (least + 1 >= admit_after_) {
    for (int i = 0; i < kHashes; ++i) {
      uint8_t& counter = Counter(hash, i);
      counter = static_cast<uint8_t>(std::max<int64_t>(0, counter - least));
    }
    return true;
  }
  for (int i = 0; i < kHashes; ++i) {
    uint8_t& counter = Counter(hash, i);
    if (counter < kCountMax) ++counter;
  }
  if (++counted_ >= static_cast<int64_t>(size_)) {
    for (uint64_t i = 0; i < size_; ++i) counters_[i] /= 2;
    counted_ /= 2;
  }
  return false;
}

void AdmissionFilter::Clear() {
  if (counters_ != nullptr) std::fill_n(counters_, size_, 0);
  counted_ = 0;
}

}  // namespace penstock

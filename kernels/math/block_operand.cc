// SPDX-License-Identifier: Apache-2.0
#include "kernels/math/block_operand.h"

#include <algorithm>
#include <cstring>

#include "kernels/math/storage.h"

namespace penstock {

std::optional<BlockOperand> BlockOperand::Make(const Tensor& tensor, const Shape& output) {
  BlockOperand operand;
  operand.data_ = static_cast<const char*>(tensor.raw_data());
  operand.size_ = static_cast<int64_t>(SizeOf(tensor.dtype()));
  const Shape& shape = tensor.shape();
  operand.period_ = shape.num_elements();
  operand.is_full_ = operand.period_ == output.num_elements();
  const int missing = output.rank() - shape.rank();
  if (missing < 0) return std::nullopt;
  // From the last dimension to the first one: dimensions of size 1, then dimensions of the output's
  // size, then dimensions of size 1 again.
  enum { kTrailing, kOwn, kLeading } part = kTrailing;
  for (int d = output.rank() - 1; d >= 0; --d) {
    const int64_t own = d < missing ? 1 : shape.dim(d - missing);
    if (own != output.dim(d) && own != 1) return std::nullopt;
    if (output.dim(d) == 1) continue;
    if (own == 1) {
      if (part == kTrailing) operand.each_ *= output.dim(d);
      if (part == kOwn) part = kLeading;
    } else {
      if (part == kLeading) return std::nullopt;
      part = kOwn;
    }
  }
  return operand;
}

BlockInput BlockOperand::At(int64_t first, int64_t n, Scratch* scratch) const {
  if (is_full_) return {data_ + first * size_};
  if (period_ == 1) return {data_, true};
  const int64_t at = first / each_ % period_;
  if (each_ > 1) {
    if (first % each_ + n <= each_) return {data_ + at * size_, true};
    RepeatElements(at, each_ - first % each_, n, scratch->data);
  } else {
    if (at + n <= period_) return {data_ + at * size_};
    if (scratch->first != at || scratch->n < n) RepeatRow(at, n, scratch->data);
  }
  scratch->first = each_ > 1 ? -1 : at;
  scratch->n = n;
  return {scratch->data};
}

void BlockOperand::RepeatRow(int64_t at, int64_t n, char* to) const {
  for (int64_t done = 0; done < n; at = 0) {
    const int64_t length = std::min(n - done, period_ - at);
    std::memcpy(to + done * size_, data_ + at * size_, length * size_);
    done += length;
  }
}

void BlockOperand::RepeatElements(int64_t at, int64_t left, int64_t n, char* to) const {
  switch (size_) {
    case 1:
      return FillRuns<uint8_t>(at, left, n, to);
    case 2:
      return FillRuns<uint16_t>(at, left, n, to);
    case 4:
      return FillRuns<uint32_t>(at, left, n, to);
    case 8:
      return FillRuns<uint64_t>(at, left, n, to);
    default:
      return FillRuns<Bytes16>(at, left, n, to);
  }
}

template <class T>
void BlockOperand::FillRuns(int64_t at, int64_t left, int64_t n, char* to) const {
  const T* const from = reinterpret_cast<const T*>(data_);
  T* const elements = reinterpret_cast<T*>(to);
  for (int64_t done = 0; done < n; left = each_, at = at + 1 == period_ ? 0 : at + 1) {
    const int64_t length = std::min(n - done, left);
    std::fill_n(elements + done, length, from[at]);
    done += length;
  }
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Conversions between numbers and quantized integers. The smallest and the largest integer of a
// type stand for the numbers min and max. The arithmetic is TensorFlow's, step by step, so that the
// results are the same bits. Therefore each step must keep its type, and the compiler must not
// contract a product and a sum into one instruction (BUILD.bazel).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/op/kernel.h"
#include "core/tensor/dtype.h"

namespace penstock {

template <class Q>
using IntegerOf = decltype(Q::value);

// The range of the integers of type Q.
template <class Q>
struct Levels {
  using Integer = IntegerOf<Q>;
  static constexpr int64_t kLowest = std::numeric_limits<Integer>::min();
  static constexpr int64_t kHighest = std::numeric_limits<Integer>::max();
  static constexpr int64_t kCount = int64_t{1} << (8 * sizeof(Integer));
  static constexpr bool kSigned = kLowest < 0;
};

// Rounds `x` towards zero. Numbers beyond the range of Q become its ends, NaN becomes 0.
template <class Q>
Q Saturate(float x) {
  using L = Levels<Q>;
  if (std::isnan(x)) return {0};
  if (x <= static_cast<float>(L::kLowest)) return {static_cast<IntegerOf<Q>>(L::kLowest)};
  if (x >= static_cast<float>(L::kHighest)) return {static_cast<IntegerOf<Q>>(L::kHighest)};
  return {static_cast<IntegerOf<Q>>(x)};
}

struct QuantizedRange {
  float min = 0, max = 0;
};

// Convert integers to numbers, and back, by the rule MIN_FIRST.
template <class Q>
class MinFirstDequantizer {
 public:
  explicit MinFirstDequantizer(QuantizedRange range) {
    scale_ = static_cast<float>((range.max - range.min) / (Levels<Q>::kCount - 1.0));
    const float first =
        range.max == range.min ? range.min : std::round(range.min / scale_) * scale_;
    zero_ = first - static_cast<float>(Levels<Q>::kLowest) * scale_;
  }
  float operator()(Q q) const { return zero_ + static_cast<float>(q.value) * scale_; }

 private:
  float scale_ = 0, zero_ = 0;
};

template <class Q>
class MinFirstQuantizer {
 public:
  explicit MinFirstQuantizer(QuantizedRange range) {
    if (range.max != range.min) {
      scale_ = static_cast<float>((Levels<Q>::kCount - 1.0) / (range.max - range.min));
      first_ = std::round(range.min * scale_);
    }
    first_ -= static_cast<float>(Levels<Q>::kLowest);
  }
  Q operator()(float x) const {
    // 2^31 - 128 is the largest float within int32.
    constexpr float kLargest = 2147483520.0f;
    return Saturate<Q>(std::min(std::round(x * scale_) - first_, kLargest));
  }

 private:
  float scale_ = 0, first_ = 0;
};

// Returns the integer that stands for x. It may lie outside the range of Q.
template <class Q>
int64_t QuantizeUnclamped(float x, QuantizedRange range) {
  using L = Levels<Q>;
  if (range.min == range.max) return L::kLowest;
  const double count = static_cast<double>(L::kCount);
  const double scale = count / ((range.max - range.min) * (count / (count - 1.0)));
  const double steps = std::round(x * scale) - std::round(range.min * scale);
  constexpr double kBound = 4e18;  // fits int64
  return static_cast<int64_t>(std::clamp(std::isnan(steps) ? 0 : steps, -kBound, kBound)) +
         L::kLowest;
}
template <class Q>
Q Quantize(float x, QuantizedRange range) {
  using L = Levels<Q>;
  return {static_cast<IntegerOf<Q>>(
      std::clamp(QuantizeUnclamped<Q>(x, range), L::kLowest, L::kHighest))};
}

template <class Q>
float Dequantize(Q q, QuantizedRange range) {
  using L = Levels<Q>;
  if (range.min == range.max) return range.min;
  const double count = static_cast<double>(L::kCount);
  const double scale = (range.max - range.min) * (count / (count - 1.0)) / count;
  const float step = static_cast<float>(scale);
  const float first = std::round(range.min / step) * step;
  // TensorFlow converts a qint32 to float here, which loses bits.
  const double levels = static_cast<double>(static_cast<float>(q.value)) - L::kLowest;
  return static_cast<float>(first + levels * scale);
}

// Returns the range of a qint32 that is the product of an A and a B: the numbers for which its
// lowest and its highest integer stand.
template <class A, class B>
QuantizedRange ProductRange(QuantizedRange a, QuantizedRange b) {
  const float a_step =
      (a.max - a.min) / static_cast<float>(Levels<A>::kHighest - Levels<A>::kLowest);
  const float b_step =
      (b.max - b.min) / static_cast<float>(Levels<B>::kHighest - Levels<B>::kLowest);
  const float step = a_step * b_step;
  return {step * static_cast<float>(Levels<qint32>::kLowest),
          step * static_cast<float>(Levels<qint32>::kHighest)};
}

// Returns the range in inputs `min` (its lower end) and `min + 1` (its upper end). InvalidArgument
// unless both are finite scalars and the lower end is not above the upper end; `what` names the
// range in errors.
StatusOr<QuantizedRange> RangeInput(const KernelContext& ctx, int min, const char* what);

// Sets outputs `min` and `min + 1` to the ends of the range.
Status SetRangeOutputs(KernelContext& ctx, int min, QuantizedRange range);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Sampler: a distribution over the classes 0..range-1 from which candidates are drawn. Each takes
// the same numbers of its stream as TensorFlow's of the same name, so that seeds give the same
// candidates there and here.
//
// Draw and Probability change nothing and are thread-safe among themselves; Learn needs a lock of
// the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "kernels/random/philox.h"

namespace penstock {

// Whole numbers below a bound, without bias.
class BoundedNumbers {
 public:
  explicit BoundedNumbers(Philox stream) : numbers_(stream) {}
  uint32_t Below32(uint32_t bound);
  uint64_t Below64(uint64_t bound);
  float UnitFloat();    // [0, 1)
  double UnitDouble();  // [0, 1)

 private:
  uint64_t Word64();

  PhiloxNumbers numbers_;
};

class Sampler {
 public:
  explicit Sampler(int64_t range) : range_(range) {}
  virtual ~Sampler() = default;
  int64_t range() const { return range_; }

  virtual int64_t Draw(BoundedNumbers& numbers) const = 0;
  // That one Draw gives `candidate`, which is below range().
  virtual float Probability(int64_t candidate) const = 0;
  // How many classes Draw can give.
  virtual int64_t possible() const { return range_; }
  // Whether Learn changes anything.
  virtual bool learns() const { return false; }
  // These classes were seen.
  virtual void Learn(absl::Span<const int64_t> classes) {}

 private:
  const int64_t range_;
};

// All classes alike.
std::unique_ptr<Sampler> NewUniformSampler(int64_t range);
// P(k) = log((k + 2) / (k + 1)) / log(range + 1): classes sorted by falling frequency.
std::unique_ptr<Sampler> NewLogUniformSampler(int64_t range);
// Proportional to the weights, one per class. InvalidArgument where one of them is no weight, or
// none is above zero.
StatusOr<std::unique_ptr<Sampler>> NewWeightedSampler(std::vector<float> weights);
// Proportional to how often classes were seen, each once before the first. ResourceExhausted where
// the range is larger than what counts can be kept for.
StatusOr<std::unique_ptr<Sampler>> NewLearnedSampler(int64_t range);

}  // namespace penstock

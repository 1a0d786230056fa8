// SPDX-License-Identifier: Apache-2.0
//
// Sampler: a distribution over the classes 0..range-1 from which candidates are drawn. Each sampler
// uses its stream as TensorFlow's sampler of the same name does, so that equal seeds give equal
// candidates.
//
// Draw and Probability change nothing, and may be called from several threads at once. Learn may
// not run at the same time as any other call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "kernels/random/philox.h"

namespace penstock {

// Draws random numbers from a stream: unbiased integers below a bound, and numbers in [0, 1).
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
  // Returns the probability that one Draw gives `candidate`, which is below range().
  virtual float Probability(int64_t candidate) const = 0;
  // Returns the number of classes that Draw may return.
  virtual int64_t possible() const { return range_; }
  // Returns whether Learn changes anything.
  virtual bool learns() const { return false; }
  // Tells the sampler that these classes were seen.
  virtual void Learn(absl::Span<const int64_t> classes) {}

 private:
  const int64_t range_;
};

// Returns a sampler that draws all classes with the same probability.
std::unique_ptr<Sampler> NewUniformSampler(int64_t range);
// Returns a sampler with P(k) = log((k + 2) / (k + 1)) / log(range + 1), for classes that are
// sorted by decreasing frequency.
std::unique_ptr<Sampler> NewLogUniformSampler(int64_t range);
// Returns a sampler with probabilities proportional to the weights, one per class. InvalidArgument
// if a weight is negative or not finite, or if no weight is above zero.
StatusOr<std::unique_ptr<Sampler>> NewWeightedSampler(std::vector<float> weights);
// Returns a sampler with probabilities proportional to the number of times that Learn has seen each
// class, counted from one. ResourceExhausted if the range is too large to keep counts.
StatusOr<std::unique_ptr<Sampler>> NewLearnedSampler(int64_t range);

}  // namespace penstock

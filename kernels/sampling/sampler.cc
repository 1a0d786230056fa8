// SPDX-License-Identifier: Apache-2.0
#include "kernels/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/random/distributions.h"

namespace penstock {
namespace {

class UniformSampler final : public Sampler {
 public:
  explicit UniformSampler(int64_t range)
      : Sampler(range), probability_(static_cast<float>(1.0 / range)) {}
  int64_t Draw(BoundedNumbers& numbers) const override {
    return static_cast<int64_t>(numbers.Below64(range()));
  }
  float Probability(int64_t) const override { return probability_; }

 private:
  const float probability_;
};

class LogUniformSampler final : public Sampler {
 public:
  explicit LogUniformSampler(int64_t range)
      : Sampler(range), log_range_(std::log1p(static_cast<double>(range))) {}
  int64_t Draw(BoundedNumbers& numbers) const override {
    // Rounding may give the number `range`; the remainder maps it into the range.
    return (static_cast<int64_t>(std::exp(numbers.UnitDouble() * log_range_)) - 1) % range();
  }
  float Probability(int64_t candidate) const override {
    const auto k = static_cast<double>(candidate);
    return static_cast<float>(std::log((k + 2) / (k + 1)) / log_range_);
  }

 private:
  const double log_range_;
};

// Walker's alias method, in Vose's form: each slot of a table is shared by its own class and at
// most one other class, so a draw uses two numbers for any range. M. D. Vose: A Linear Algorithm
// for Generating Random Numbers with a Given Distribution. IEEE TSE 17 (1991).
class WeightedSampler final : public Sampler {
 public:
  explicit WeightedSampler(std::vector<float> weights)
      : Sampler(static_cast<int64_t>(weights.size())), weights_(std::move(weights)) {
    for (const float weight : weights_) total_ += weight;
    double sum = 0;
    for (const float weight : weights_) sum += weight;
    MakeSlots(sum);
  }

  int64_t Draw(BoundedNumbers& numbers) const override {
    const float at = numbers.UnitFloat();
    const uint32_t slot = numbers.Below32(static_cast<uint32_t>(slots_.size()));
    return at < slots_[slot].share ? slot : slots_[slot].alias;
  }
  float Probability(int64_t candidate) const override { return weights_[candidate] / total_; }
  int64_t possible() const override {
    return std::count_if(weights_.begin(), weights_.end(), [](float w) { return w > 0; });
  }

 private:
  struct Slot {
    float share;    // probability of the slot's own class
    int32_t alias;  // the class that has the rest of the slot
  };

  void MakeSlots(double sum) {
    const size_t n = weights_.size();
    std::vector<double> share(n);
    std::vector<int32_t> alias(n), rich, poor;
    for (size_t i = 0; i < n; ++i) {
      share[i] = weights_[i] * n / sum;
      alias[i] = static_cast<int32_t>(i);
      (share[i] < 1 ? poor : rich).push_back(alias[i]);
    }
    while (!rich.empty() && !poor.empty()) {
      const int32_t from = rich.back(), to = poor.back();
      rich.pop_back();
      poor.pop_back();
      alias[to] = from;
      share[from] -= 1 - share[to];
      (share[from] < 1 ? poor : rich).push_back(from);
    }
    // The classes that remain in a list fill their slots completely, except for rounding errors.
    for (const auto* left : {&rich, &poor}) {
      for (const int32_t i : *left) share[i] = 1;
    }
    slots_.reserve(n);
    for (size_t i = 0; i < n; ++i) slots_.push_back({static_cast<float>(share[i]), alias[i]});
  }

  const std::vector<float> weights_;
  float total_ = 0;
  std::vector<Slot> slots_;
};

// Draws in proportion to counts. Keeps the counts in a Fenwick tree, which finds and changes prefix
// sums in log(range) steps.
class LearnedSampler final : public Sampler {
 public:
  explicit LearnedSampler(int64_t range)
      : Sampler(range), counts_(range, 1), sums_(range + 1), total_(static_cast<int32_t>(range)) {
    for (int64_t i = 1; i <= range; ++i) sums_[i] = static_cast<int32_t>(i & -i);
    while (step_ * 2 <= range) step_ *= 2;
  }

  int64_t Draw(BoundedNumbers& numbers) const override {
    auto left = static_cast<int32_t>(numbers.Below32(total_));
    int64_t at = 0;
    for (int64_t step = step_; step > 0; step /= 2) {
      if (at + step > range() || sums_[at + step] > left) continue;
      at += step;
      left -= sums_[at];
    }
    return at;
  }
  float Probability(int64_t candidate) const override {
    return static_cast<float>(counts_[candidate]) / static_cast<float>(total_);
  }
  bool learns() const override { return true; }
  void Learn(absl::Span<const int64_t> classes) override {
    for (const int64_t seen : classes) {
      if (total_ == std::numeric_limits<int32_t>::max()) return;
      ++counts_[seen];
      ++total_;
      for (int64_t i = seen + 1; i <= range(); i += i & -i) ++sums_[i];
    }
  }

 private:
  std::vector<int32_t> counts_;
  std::vector<int32_t> sums_;  // [i]: sum of the (i & -i) classes that end with i - 1
  int32_t total_;
  int64_t step_ = 1;  // the largest power of two in the range
};

}  // namespace

uint32_t BoundedNumbers::Below32(uint32_t bound) { return UniformBelow(bound, numbers_); }
uint64_t BoundedNumbers::Below64(uint64_t bound) {
  return UniformBelow(bound, [this] { return Word64(); });
}
uint64_t BoundedNumbers::Word64() {
  const uint64_t low = numbers_();
  return low | uint64_t{numbers_()} << 32;
}
float BoundedNumbers::UnitFloat() { return penstock::UnitFloat(numbers_()); }
double BoundedNumbers::UnitDouble() {
  const uint32_t high = numbers_();
  return penstock::UnitDouble(high, numbers_());
}

std::unique_ptr<Sampler> NewUniformSampler(int64_t range) {
  return std::make_unique<UniformSampler>(range);
}

std::unique_ptr<Sampler> NewLogUniformSampler(int64_t range) {
  return std::make_unique<LogUniformSampler>(range);
}

StatusOr<std::unique_ptr<Sampler>> NewWeightedSampler(std::vector<float> weights) {
  if (weights.size() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("there are ", weights.size(), " weights, at most 2^31 - 1 are possible");
  }
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0 && std::isfinite(weights[i]))) {
      return InvalidArgument("weight ", i, " is ", weights[i], ", not a number from 0 up");
    }
    sum += weights[i];
  }
  if (sum <= 0) return InvalidArgument("no weight is above zero");
  return std::make_unique<WeightedSampler>(std::move(weights));
}

StatusOr<std::unique_ptr<Sampler>> NewLearnedSampler(int64_t range) {
  // Each class takes 8 bytes.
  constexpr int64_t kRangeMax = int64_t{1} << 28;
  if (range <= kRangeMax) return std::make_unique<LearnedSampler>(range);
  return ResourceExhausted("range_max is ", range, ", a learned sampler keeps counts of at most ",
                           kRangeMax, " classes");
}

}  // namespace penstock

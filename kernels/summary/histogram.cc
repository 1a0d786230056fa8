// SPDX-License-Identifier: Apache-2.0
#include "kernels/summary/histogram.h"

#include <algorithm>

namespace penstock {
namespace {

const std::vector<double>& Limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> above;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) above.push_back(limit);
    above.push_back(std::numeric_limits<double>::max());
    std::vector<double> all;
    for (auto limit = above.rbegin(); limit != above.rend(); ++limit) all.push_back(-*limit);
    all.push_back(0);
    all.insert(all.end(), above.begin(), above.end());
    return all;
  }();
  return limits;
}

}  // namespace

Histogram::Histogram() : counts_(Limits().size()) {}

void Histogram::Add(double value) {
  const auto limit = std::upper_bound(Limits().begin(), Limits().end() - 1, value);
  ++counts_[limit - Limits().begin()];
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  ++count_;
  sum_ += value;
  sum_squares_ += value * value;
}

std::vector<Histogram::Bucket> Histogram::Buckets() const {
  std::vector<Bucket> buckets;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const Bucket bucket{.limit = Limits()[i], .count = counts_[i]};
    if (bucket.count == 0 && !buckets.empty() && buckets.back().count == 0) {
      buckets.back() = bucket;
    } else {
      buckets.push_back(bucket);
    }
  }
  return buckets;
}

}  // namespace penstock

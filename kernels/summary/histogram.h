// SPDX-License-Identifier: Apache-2.0
//
// Histogram: how many numbers fell between limits that grow by a tenth, on both sides of zero, from
// 1e-12 to 1e20 (TensorFlow's, so that event files can be merged). Single-threaded.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace penstock {

class Histogram {
 public:
  Histogram();
  void Add(double value);

  // The largest and the lowest finite number before the first.
  double min() const { return min_; }
  double max() const { return max_; }
  double count() const { return count_; }
  double sum() const { return sum_; }
  double sum_squares() const { return sum_squares_; }

  // Numbers from the limit before up to `limit`. Empty neighbours are one.
  struct Bucket {
    double limit;
    double count;
  };
  std::vector<Bucket> Buckets() const;

 private:
  double min_ = std::numeric_limits<double>::max();
  double max_ = std::numeric_limits<double>::lowest();
  double count_ = 0, sum_ = 0, sum_squares_ = 0;
  std::vector<double> counts_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Histogram: counts numbers in buckets. The limits are 0; 1e-12 and so on, each greater than the
// one before by a tenth, up to 1e20; the largest double; and all of these with a negative sign.
// They are TensorFlow's, so that event files can be merged. Single-threaded.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace penstock {

class Histogram {
 public:
  Histogram();
  void Add(double value);

  // Return the least and the greatest number added. Before the first Add, min() returns the largest
  // finite number, and max() the lowest.
  double min() const { return min_; }
  double max() const { return max_; }
  double count() const { return count_; }
  double sum() const { return sum_; }
  double sum_squares() const { return sum_squares_; }

  // The count of numbers from the previous limit up to `limit`. Neighbouring empty buckets are
  // merged.
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

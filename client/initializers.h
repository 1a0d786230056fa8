// SPDX-License-Identifier: Apache-2.0
//
// Initializers: how a variable gets its first value. An Initializer adds the nodes that compute it;
// the variable runs them on its own device.
//
// Random ones repeat themselves if `seed` is not 0; 0 gives different numbers in each run. The
// parts of a partitioned variable differ from each other in either case.
#pragma once

#include <cstdint>
#include <functional>

#include "core/op/output.h"

namespace penstock::client {

// The shape that an initializer fills: that of a variable, or of the rows that one part of a
// partitioned variable holds. An initializer that takes a Shape gets that of the part.
struct InitialShape {
  InitialShape(const Shape& shape) : shape(shape), whole(shape) {}  // NOLINT
  InitialShape(const Shape& shape, const Shape& whole, int64_t start)
      : shape(shape), whole(whole), start(start) {}
  operator const Shape&() const { return shape; }  // NOLINT

  Shape shape, whole;
  int64_t start = 0;  // the part's first row in the whole
};

using Initializer = std::function<Output(GraphSink& sink, DType dtype, const InitialShape& shape)>;

Initializer Zeros();
Initializer Ones();
Initializer Filled(double value);
Initializer RandomUniform(double low, double high, int64_t seed = 0);
Initializer RandomNormal(double mean, double stddev, int64_t seed = 0);
// Nothing beyond two standard deviations.
Initializer TruncatedNormal(double mean, double stddev, int64_t seed = 0);
// Fans are those of the whole variable. For weights before tanh and softmax: uniform, of variance 2
// / (fan_in + fan_out).
Initializer GlorotUniform(int64_t seed = 0);
// For weights before relu: normal, truncated, of variance 2 / fan_in.
Initializer HeNormal(int64_t seed = 0);

}  // namespace penstock::client

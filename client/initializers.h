// SPDX-License-Identifier: Apache-2.0
//
// Initializers: how a variable gets its first value. An Initializer adds the nodes that compute it;
// the variable runs them on its own device.
//
// Random initializers give the same numbers in each run if `seed` is not 0, and different ones if
// it is 0. The parts of a partitioned variable get different numbers in either case.
#pragma once

#include <cstdint>
#include <functional>

#include "core/op/output.h"

namespace penstock::client {

// The shape that an initializer fills: the shape of a variable, or of one part of a partitioned
// variable. An initializer that takes a Shape gets the shape of the part.
struct InitialShape {
  InitialShape(const Shape& shape) : shape(shape), whole(shape) {}  // NOLINT
  InitialShape(const Shape& shape, const Shape& whole, int64_t start)
      : shape(shape), whole(whole), start(start) {}
  operator const Shape&() const { return shape; }  // NOLINT

  Shape shape, whole;
  int64_t start = 0;  // the part's first row in the complete variable
};

using Initializer = std::function<Output(GraphSink& sink, DType dtype, const InitialShape& shape)>;

Initializer Zeros();
Initializer Ones();
Initializer Filled(double value);
Initializer RandomUniform(double low, double high, int64_t seed = 0);
Initializer RandomNormal(double mean, double stddev, int64_t seed = 0);
// Values are at most two standard deviations from the mean.
Initializer TruncatedNormal(double mean, double stddev, int64_t seed = 0);
// Returns an initializer for weights before tanh and softmax: uniform, with variance 2 / (fan_in +
// fan_out). The fans are those of the complete variable.
Initializer GlorotUniform(int64_t seed = 0);
// Returns an initializer for weights before relu: truncated normal, with variance 2 / fan_in.
Initializer HeNormal(int64_t seed = 0);

}  // namespace penstock::client

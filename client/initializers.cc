// SPDX-License-Identifier: Apache-2.0
#include "client/initializers.h"

#include <algorithm>
#include <cmath>

#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output ShapeConstant(GraphSink& sink, const Shape& shape) {
  return Constant(sink, Tensor::Vector<int64_t>({shape.dims().begin(), shape.dims().end()}));
}

// Returns a constant of any numeric type: a float64 constant that is cast in the graph.
Output Number(GraphSink& sink, DType dtype, double value) {
  return Cast(Constant(sink, Tensor::Scalar(value)), dtype);
}

Output Random(GraphSink& sink, string_view op, DType dtype, const InitialShape& shape,
              int64_t seed) {
  // The op draws different numbers in each run only if both seeds are 0.
  const int64_t seed2 = seed == 0 ? 0 : shape.start;
  return CallIn(sink, op, {ShapeConstant(sink, shape)},
                {{"dtype", dtype}, {"seed", seed}, {"seed2", seed2}});
}

// The fans of a matrix [in, out], or of a convolution's filter [..., in, out].
struct Fans {
  double in = 1, out = 1;
};
Fans FansOf(const Shape& shape) {
  if (shape.rank() == 0) return {};
  if (shape.rank() == 1) return {static_cast<double>(shape.dim(0)), 1};
  double field = 1;
  for (int d = 0; d + 2 < shape.rank(); ++d) field *= static_cast<double>(shape.dim(d));
  return {std::max(1.0, field * static_cast<double>(shape.dim(shape.rank() - 2))),
          std::max(1.0, field * static_cast<double>(shape.dim(shape.rank() - 1)))};
}

}  // namespace

Initializer Filled(double value) {
  return [=](GraphSink& sink, DType dtype, const InitialShape& shape) {
    return Fill(ShapeConstant(sink, shape), Number(sink, dtype, value));
  };
}
Initializer Zeros() { return Filled(0); }
Initializer Ones() { return Filled(1); }

Initializer RandomUniform(double low, double high, int64_t seed) {
  return [=](GraphSink& sink, DType dtype, const InitialShape& shape) {
    return Random(sink, "RandomUniform", dtype, shape, seed) * (high - low) + low;
  };
}

Initializer RandomNormal(double mean, double stddev, int64_t seed) {
  return [=](GraphSink& sink, DType dtype, const InitialShape& shape) {
    return Random(sink, "RandomStandardNormal", dtype, shape, seed) * stddev + mean;
  };
}

Initializer TruncatedNormal(double mean, double stddev, int64_t seed) {
  return [=](GraphSink& sink, DType dtype, const InitialShape& shape) {
    return Random(sink, "TruncatedNormal", dtype, shape, seed) * stddev + mean;
  };
}

Initializer GlorotUniform(int64_t seed) {
  return [=](GraphSink& sink, DType dtype, const InitialShape& shape) {
    const Fans fans = FansOf(shape.whole);
    const double limit = std::sqrt(6 / (fans.in + fans.out));
    return RandomUniform(-limit, limit, seed)(sink, dtype, shape);
  };
}

Initializer HeNormal(int64_t seed) {
  return [=](GraphSink& sink, DType dtype, const InitialShape& shape) {
    // 0.8796: the standard deviation of a standard normal truncated at two standard deviations.
    const double stddev = std::sqrt(2 / FansOf(shape.whole).in) / 0.87962566103423978;
    return TruncatedNormal(0, stddev, seed)(sink, dtype, shape);
  };
}

}  // namespace penstock::client

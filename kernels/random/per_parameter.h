// SPDX-License-Identifier: Apache-2.0
//
// Loops of ops that draw numbers of a distribution for each element of a parameter tensor, with a
// section of the stream for each number, as TensorFlow does.
#pragma once

#include <cstdint>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "kernels/array/arguments.h"
#include "kernels/random/distributions.h"
#include "kernels/random/random_stream.h"

namespace penstock {

// Returns numbers of a distribution one at a time. Within a group it begins with the last number,
// as TensorFlow does.
template <class Distribution>
class OneByOne {
 public:
  double Next(Philox& stream) {
    if (left_ == 0) {
      group_ = distribution_(stream);
      left_ = group_.size();
    }
    return group_[--left_];
  }

 private:
  Distribution distribution_;
  Group<double> group_ = {};
  size_t left_ = 0;
};

// Returns the stream at the section of number `index`.
inline Philox SectionOf(Philox stream, int64_t index,
                        uint64_t blocks = RandomStream::kBlocksPerOutput) {
  stream.Skip(static_cast<uint64_t>(index) * blocks);
  return stream;
}

// Calls draw(place, parameter, index) for each of the `count` elements of an output whose last
// dimensions are those of the tensor of `parameters` parameters. `place` is the element's index in
// the output, `parameter` that of its parameter. `index` counts the numbers of one parameter after
// those of the previous one, and selects the number's section of the stream.
template <class Draw>
void ForEachNumber(int64_t count, int64_t parameters, Scheduler& threads, const Draw& draw) {
  if (count == 0) return;
  const int64_t per_parameter = count / parameters;
  threads.ParallelFor(count, 80, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t parameter = i / per_parameter, sample = i % per_parameter;
      draw(sample * parameters + parameter, parameter, i);
    }
  });
}

// Returns the dimensions that the vector `shape` holds, followed by those of `parameters`.
// InvalidArgument if `shape` is no vector of sizes, or if the result has too many elements.
inline StatusOr<Shape> JoinedShape(const Tensor& shape, const Tensor& parameters) {
  ASSIGN_OR_RETURN(const Shape samples, ShapeVector(shape, "shape"));
  Dims dims(samples.dims().begin(), samples.dims().end());
  dims.insert(dims.end(), parameters.shape().dims().begin(), parameters.shape().dims().end());
  return Shape::Make(dims);
}

// Returns the shape that the vector `shape` holds. InvalidArgument unless its last dimensions are
// those of `end`.
inline StatusOr<Shape> ShapeWithEnd(const Tensor& shape, const Shape& end) {
  ASSIGN_OR_RETURN(const Shape whole, ShapeVector(shape, "shape"));
  if (whole.rank() >= end.rank() && whole.dims().subspan(whole.rank() - end.rank()) == end.dims()) {
    return whole;
  }
  return InvalidArgument("Shape passed in must end with broadcasted shape: shape is ",
                         whole.ToString(), ", the parameters have ", end.ToString());
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Gradients of broadcast operands: sums over the dimensions along which the operand was repeated.
// If the shapes are known, these dimensions become constants; else nodes compute them in each step.
#include <algorithm>
#include <optional>

#include "core/op/gradient.h"

namespace penstock {
namespace {

// How to reduce the gradient of one operand to the operand's shape.
struct Reduction {
  std::vector<int32_t> axes;
  // True if the operand has dimensions of size 1, which the sum removes and a Reshape restores.
  bool reshape = false;
};

// Returns the size of the dimension of `shape` that broadcasting aligns with dimension i of a
// result of rank `rank`; 0 if `shape` has no such dimension. Shapes are aligned at their last
// dimensions.
int64_t AlignedDim(const PartialShape& shape, int i, int rank) {
  const int own_dim = i - (rank - shape.rank());
  return own_dim < 0 ? 0 : shape.dim(own_dim);
}

// Returns the reduction for operand `x`, which is broadcast with `other`; nullopt if the known
// dimensions do not determine it. Summing over a dimension that turns out to be 1 is harmless.
std::optional<Reduction> StaticReduction(const PartialShape& x, const PartialShape& other) {
  if (!x.known_rank() || !other.known_rank()) return std::nullopt;
  const int rank = std::max(x.rank(), other.rank());
  const int added = rank - x.rank();
  Reduction reduction;
  for (int i = 0; i < rank; ++i) {
    const int64_t other_dim = AlignedDim(other, i, rank);
    const bool other_is_one = i < rank - other.rank() || other_dim == 1;
    if (i < added) {
      reduction.axes.push_back(i);
    } else if (other_is_one) {
      continue;  // the result has the same dimension as x
    } else if (x.dim(i - added) == 1) {
      reduction.axes.push_back(i);
      reduction.reshape = true;
    } else if (x.dim(i - added) == PartialShape::kUnknown) {
      return std::nullopt;  // x may be broadcast along this dimension or not
    }
  }
  return reduction;
}

Output ShapeConstantOrNode(Output x) {
  const PartialShape shape = x.shape();
  if (!shape.fully_known()) return ShapeOf(x);
  std::vector<int32_t> dims;
  for (int64_t dim : shape.dims()) {
    if (dim != static_cast<int32_t>(dim)) return ShapeOf(x, DType::kInt64);
    dims.push_back(static_cast<int32_t>(dim));
  }
  return Constant(*x.sink, Tensor::Vector<int32_t>(dims));
}

Output Apply(const Reduction& reduction, Output gradient, Output x) {
  if (reduction.axes.empty()) return gradient;
  const Output sum = Sum(gradient, Constant(*gradient.sink, Tensor::Vector(reduction.axes)));
  return reduction.reshape ? Reshape(sum, ShapeConstantOrNode(x)) : sum;
}

Output Apply(Output axes, Output gradient, Output x_shape) {
  return Reshape(Sum(gradient, axes), x_shape);
}

}  // namespace

Output SumToShapeOf(Output dy, Output x) {
  const auto reduction = StaticReduction(x.shape(), dy.shape());
  if (reduction.has_value()) return Apply(*reduction, dy, x);
  const Output shape = ShapeOf(x);
  return Apply(Call("BroadcastGradientArgs", {shape, ShapeOf(dy)}), dy, shape);
}

std::vector<Gradient> SumToInputs(const GradientScope& g, Output dx, Output dy) {
  const Output x = g.x(0), y = g.x(1);
  if (x == y) return {dx, dy};  // a tensor is never broadcast against itself
  const auto reduce_x = StaticReduction(x.shape(), y.shape());
  const auto reduce_y = StaticReduction(y.shape(), x.shape());
  if (reduce_x.has_value() && reduce_y.has_value()) {
    return {Apply(*reduce_x, dx, x), Apply(*reduce_y, dy, y)};
  }
  const Output x_shape = ShapeOf(x), y_shape = ShapeOf(y);
  const Output axes = Call("BroadcastGradientArgs", {x_shape, y_shape});
  return {reduce_x.has_value() ? Apply(*reduce_x, dx, x) : Apply(axes, dx, x_shape),
          reduce_y.has_value() ? Apply(*reduce_y, dy, y) : Apply(axes.Sibling(1), dy, y_shape)};
}

}  // namespace penstock

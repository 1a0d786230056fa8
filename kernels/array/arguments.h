// SPDX-License-Identifier: Apache-2.0
//
// Reads and checks the small integer inputs of ops: shapes, axes, permutations, paddings.
//
// If an input is wrong, the functions that take its name return InvalidArgument with the name and
// the expected form.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/op/shape_scope.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Returns the integer of an int16, int32 or int64 scalar. Also accepts a vector of one element,
// because TensorFlow 1 clients send such vectors.
StatusOr<int64_t> IntScalar(const Tensor& tensor, string_view name);
// Returns the integers of an int16, int32 or int64 vector.
StatusOr<Dims> IntVector(const Tensor& tensor, string_view name);
// Like IntVector above. InvalidArgument unless the vector has `count` elements.
StatusOr<Dims> IntVector(const Tensor& tensor, string_view name, int64_t count);
// Returns the row-major integers of an int16, int32 or int64 matrix with `rows` rows and 2 columns
// (paddings, crops).
StatusOr<Dims> IntPairs(const Tensor& tensor, string_view name, int64_t rows);
// Returns the shape whose dimensions are the elements of an integer vector.
StatusOr<Shape> ShapeVector(const Tensor& tensor, string_view name);

// Returns the axis counted from the front. InvalidArgument unless it is in [-rank, rank).
StatusOr<int> NormalAxis(int64_t axis, int rank, string_view name);
// Returns the axis that a scalar tensor holds, counted from the front.
StatusOr<int> AxisInput(const Tensor& tensor, int rank, string_view name);

// Add and multiply dimensions that may be PartialShape::kUnknown. The result is kUnknown if an
// operand is unknown, except that zero times any dimension is zero. A result that does not fit in
// 64 bits is kUnknown, too: Shape::Make refuses the shape when the op runs.
int64_t AddDims(int64_t a, int64_t b);
int64_t MultiplyDims(int64_t a, int64_t b);

// For shape functions: returns the shape that input i holds if the input is constant. Otherwise
// returns a shape of known rank if the input's length is known, else an unknown shape.
// InvalidArgument if the constant is no shape, or if the length exceeds kMaxRank.
StatusOr<PartialShape> ShapeInput(const ShapeScope& s, int i);
// Returns dimensions [begin, end) of `shape`, whose rank must be known.
PartialShape SubShape(const PartialShape& shape, int begin, int end);
// Returns a's dimensions followed by b's, or an unknown shape if the rank of a or b is unknown.
StatusOr<PartialShape> JoinShapes(const PartialShape& a, const PartialShape& b);
// Sets the shape of output i. Returns an error if the dimensions are not valid.
Status SetOutput(ShapeScope& s, int i, absl::Span<const int64_t> dims);

}  // namespace penstock

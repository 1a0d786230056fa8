// SPDX-License-Identifier: Apache-2.0
//
// What ops read from their small integer inputs (shapes, axes, permutations, paddings), checked.
//
// Every function takes the input's name and says in its InvalidArgument what was expected of it.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/op/shape_scope.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The one integer of a scalar int32 or int64 tensor. (A vector of one element passes, as
// TensorFlow-1 clients send such.)
StatusOr<int64_t> IntScalar(const Tensor& tensor, string_view name);
// The integers of an int32 or int64 vector.
StatusOr<Dims> IntVector(const Tensor& tensor, string_view name);
// The same, where there must be `count` of them.
StatusOr<Dims> IntVector(const Tensor& tensor, string_view name, int64_t count);
// Row-major integers of an int32 or int64 matrix with `rows` rows and 2 columns (paddings, crops).
StatusOr<Dims> IntPairs(const Tensor& tensor, string_view name, int64_t rows);
// A vector as the shape that it spells.
StatusOr<Shape> ShapeVector(const Tensor& tensor, string_view name);

// `axis` in [-rank, rank), counted from the front.
StatusOr<int> NormalAxis(int64_t axis, int rank, string_view name);
// The axis that a scalar tensor holds.
StatusOr<int> AxisInput(const Tensor& tensor, int rank, string_view name);

// Arithmetic on dimensions that may be PartialShape::kUnknown. What does not fit in 64 bits is
// unknown too; Shape::Make refuses it when the op runs.
int64_t AddDims(int64_t a, int64_t b);
int64_t MultiplyDims(int64_t a, int64_t b);

// For shape functions. The shape that constant input i spells; where it is not constant, the rank
// that its length gives, or nothing at all.
StatusOr<PartialShape> ShapeInput(const ShapeScope& s, int i);
// Dimensions [begin, end) of `shape`, whose rank must be known.
PartialShape SubShape(const PartialShape& shape, int begin, int end);
// a's dimensions followed by b's; of unknown rank where one is.
StatusOr<PartialShape> JoinShapes(const PartialShape& a, const PartialShape& b);
// States output i by its dimensions, checking them.
Status SetOutput(ShapeScope& s, int i, absl::Span<const int64_t> dims);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/arguments.h"

#include <utility>
#include <vector>

namespace penstock {
namespace {

StatusOr<Dims> Integers(const Tensor& tensor, string_view name) {
  if (tensor.dtype() == DType::kInt32) {
    const auto flat = tensor.flat<int32_t>();
    return Dims(flat.begin(), flat.end());
  }
  if (tensor.dtype() == DType::kInt64) {
    const auto flat = tensor.flat<int64_t>();
    return Dims(flat.begin(), flat.end());
  }
  if (tensor.dtype() == DType::kInt16) {
    const auto flat = tensor.flat<int16_t>();
    return Dims(flat.begin(), flat.end());
  }
  return InvalidArgument(name, " must be int32 or int64, is ", Name(tensor.dtype()));
}

}  // namespace

StatusOr<int64_t> IntScalar(const Tensor& tensor, string_view name) {
  if (tensor.num_elements() != 1 || tensor.rank() > 1) {
    return InvalidArgument(name, " must be a scalar, has shape ", tensor.shape().ToString());
  }
  ASSIGN_OR_RETURN(const Dims values, Integers(tensor, name));
  return values[0];
}

StatusOr<Dims> IntVector(const Tensor& tensor, string_view name) {
  if (tensor.rank() != 1) {
    return InvalidArgument(name, " must be a vector, has shape ", tensor.shape().ToString());
  }
  return Integers(tensor, name);
}

StatusOr<Dims> IntVector(const Tensor& tensor, string_view name, int64_t count) {
  ASSIGN_OR_RETURN(Dims values, IntVector(tensor, name));
  if (static_cast<int64_t>(values.size()) != count) {
    return InvalidArgument(name, " must have ", count, " elements, has ", values.size());
  }
  return values;
}

StatusOr<Dims> IntPairs(const Tensor& tensor, string_view name, int64_t rows) {
  if (tensor.rank() != 2 || tensor.dim(1) != 2 || tensor.dim(0) != rows) {
    return InvalidArgument(name, " must be a matrix with 2 columns and ", rows, " rows, has shape ",
                           tensor.shape().ToString());
  }
  return Integers(tensor, name);
}

StatusOr<Shape> ShapeVector(const Tensor& tensor, string_view name) {
  ASSIGN_OR_RETURN(const Dims dims, IntVector(tensor, name));
  StatusOr<Shape> shape = Shape::Make(dims);
  if (!shape.ok()) return Annotate(shape.status(), name);
  return shape;
}

StatusOr<int> NormalAxis(int64_t axis, int rank, string_view name) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument(name, " = ", axis, " is not in [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

StatusOr<int> AxisInput(const Tensor& tensor, int rank, string_view name) {
  ASSIGN_OR_RETURN(const int64_t axis, IntScalar(tensor, name));
  return NormalAxis(axis, rank, name);
}

int64_t AddDims(int64_t a, int64_t b) {
  int64_t sum;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) return PartialShape::kUnknown;
  return sum;
}

int64_t MultiplyDims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t product;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return PartialShape::kUnknown;
  return product;
}

StatusOr<PartialShape> ShapeInput(const ShapeScope& s, int i) {
  std::vector<int64_t> dims;
  if (s.ConstantInts(i, &dims)) {
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    return PartialShape(shape);
  }
  ASSIGN_OR_RETURN(const PartialShape vector, s.WithRank(i, 1));
  if (vector.dim(0) < 0) return PartialShape();
  if (vector.dim(0) > kMaxRank) {
    return InvalidArgument("a shape of ", vector.dim(0), " dimensions; at most ", kMaxRank);
  }
  return PartialShape::UnknownOfRank(static_cast<int>(vector.dim(0)));
}

PartialShape SubShape(const PartialShape& shape, int begin, int end) {
  return PartialShape(shape.dims().subspan(begin, end - begin));
}

StatusOr<PartialShape> JoinShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape();
  Dims joined(a.dims().begin(), a.dims().end());
  joined.insert(joined.end(), b.dims().begin(), b.dims().end());
  return PartialShape::Make(joined);
}

Status SetOutput(ShapeScope& s, int i, absl::Span<const int64_t> dims) {
  ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(dims));
  s.set_output(i, std::move(shape));
  return OkStatus();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Ops that give the same elements another shape: Reshape, ExpandDims, Squeeze. They share the
// buffer.
#include <algorithm>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

// Returns the product of all sizes, or with `skip_zeros` of those that are not zero.
// InvalidArgument if a size is negative, or if the product does not fit in int64.
StatusOr<int64_t> Product(absl::Span<const int64_t> dims, bool skip_zeros) {
  Dims counted(dims.begin(), dims.end());
  if (skip_zeros) std::replace(counted.begin(), counted.end(), int64_t{0}, int64_t{1});
  return CheckedProduct(counted);
}

// Replaces the one -1 in `dims`, if any, so that `dims` has as many elements as `input`. If another
// size in `dims` is zero, any number would do; then, as in TensorFlow, it is the product of the
// non-zero sizes of `input` divided (rounding down) by the product of the other non-zero sizes of
// `dims`. InvalidArgument if a size is less than -1, if several are -1, or if no number fits.
Status FillInMissing(const Shape& input, Dims* dims) {
  int missing = -1;
  for (int i = 0; i < static_cast<int>(dims->size()); ++i) {
    const int64_t dim = (*dims)[i];
    if (dim < -1) return InvalidArgument("size ", i, " must be non-negative, not ", dim);
    if (dim >= 0) continue;
    if (missing >= 0) {
      return InvalidArgument("only one input size may be -1, not both ", missing, " and ", i);
    }
    missing = i;
  }
  if (missing < 0) return OkStatus();
  (*dims)[missing] = 1;
  const bool empty = std::find(dims->begin(), dims->end(), 0) != dims->end();
  ASSIGN_OR_RETURN(const int64_t elements, Product(input.dims(), /*skip_zeros=*/empty));
  ASSIGN_OR_RETURN(const int64_t others, Product(*dims, /*skip_zeros=*/empty));
  if (elements % others != 0 && input.num_elements() != 0) {
    return InvalidArgument("Input to reshape is a tensor with ", elements,
                           " values, but the requested shape requires a multiple of ", others);
  }
  (*dims)[missing] = elements / others;
  return OkStatus();
}

class ReshapeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor input = ctx.TakeInput(0);
    ASSIGN_OR_RETURN(Dims dims, IntVector(ctx.input(1), "shape"));
    RETURN_IF_ERROR(FillInMissing(input.shape(), &dims));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    if (shape.num_elements() != input.num_elements()) {
      return InvalidArgument("Input to reshape is a tensor with ", input.num_elements(),
                             " values, but the requested shape has ", shape.num_elements());
    }
    ctx.SetOutput(0, input.Reshaped(shape));
    return OkStatus();
  }
};

Status ReshapeShape(ShapeScope& s) {
  std::vector<int64_t> wanted;
  if (!s.ConstantInts(1, &wanted)) {
    ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 1));
    s.set_output(0, std::move(shape));
    return OkStatus();
  }
  Dims dims(wanted.begin(), wanted.end());
  if (s.input(0).fully_known()) {
    const Shape input = s.input(0).ToShape();
    const int64_t elements = input.num_elements();
    RETURN_IF_ERROR(FillInMissing(input, &dims));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    if (shape.num_elements() != elements) {
      return InvalidArgument("cannot reshape a tensor with ", elements, " elements to shape ",
                             shape.ToString());
    }
  }
  return SetOutput(s, 0, dims);
}

std::vector<Gradient> ReshapeGradient(const GradientScope& g) {
  std::vector<Gradient> dx(g.num_inputs());
  dx[0] = Reshape(g.dy(), ShapeOf(g.x()));
  return dx;
}

class ExpandDimsKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor input = ctx.TakeInput(0);
    ASSIGN_OR_RETURN(const int64_t dim, IntScalar(ctx.input(1), "dim"));
    const int rank = input.rank();
    if (dim < -1 - rank || dim > rank) {
      return InvalidArgument("Tried to expand dim index ", dim, " for tensor with ", rank,
                             " dimensions.");
    }
    Dims dims(input.shape().dims().begin(), input.shape().dims().end());
    dims.insert(dims.begin() + (dim < 0 ? dim + rank + 1 : dim), 1);
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    ctx.SetOutput(0, input.Reshaped(shape));
    return OkStatus();
  }
};

Status ExpandDimsShape(ShapeScope& s) {
  const PartialShape& input = s.input(0);
  std::vector<int64_t> dim;
  if (!input.known_rank()) return OkStatus();
  if (!s.ConstantInts(1, &dim) || dim.size() != 1) {
    if (input.rank() >= kMaxRank) return InvalidArgument("input has ", input.rank(), " dimensions");
    s.set_output(0, PartialShape::UnknownOfRank(input.rank() + 1));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const int at, NormalAxis(dim[0], input.rank() + 1, "dim"));
  Dims dims(input.dims().begin(), input.dims().end());
  dims.insert(dims.begin() + at, 1);
  return SetOutput(s, 0, dims);
}

// Sets *kept to the dimensions of `shape` without those in `chosen` or, if `chosen` is empty,
// without all of size 1. Chosen dimensions of unknown size count as 1. InvalidArgument if a chosen
// dimension does not exist, or has another size. *certain is false if a dimension of unknown size
// might have to be removed.
Status RemoveDims(const PartialShape& shape, const std::vector<int64_t>& chosen, Dims* kept,
                  bool* certain) {
  std::vector<bool> drop(shape.rank(), false);
  for (const int64_t axis : chosen) {
    if (axis < -shape.rank() || axis >= shape.rank()) {
      return InvalidArgument("Tried to squeeze dim index ", axis, " for tensor with ", shape.rank(),
                             " dimensions.");
    }
    drop[axis < 0 ? axis + shape.rank() : axis] = true;
  }
  *certain = true;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t dim = shape.dim(i);
    if (chosen.empty() && dim < 0) *certain = false;
    if (drop[i] && dim != 1 && dim != PartialShape::kUnknown) {
      return InvalidArgument("Can not squeeze dim[", i, "], expected a dimension of 1, got ", dim);
    }
    if (!drop[i] && !(chosen.empty() && dim == 1)) kept->push_back(dim);
  }
  return OkStatus();
}

class SqueezeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("squeeze_dims", &chosen_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor input = ctx.TakeInput(0);
    Dims kept;
    bool certain;
    RETURN_IF_ERROR(RemoveDims(input.shape(), chosen_, &kept, &certain));
    ctx.SetOutput(0, input.Reshaped(Shape(kept)));
    return OkStatus();
  }

 private:
  std::vector<int64_t> chosen_;
};

Status SqueezeShape(ShapeScope& s) {
  if (!s.input(0).known_rank()) return OkStatus();
  Dims kept;
  bool certain;
  RETURN_IF_ERROR(
      RemoveDims(s.input(0), s.attr<std::vector<int64_t>>("squeeze_dims"), &kept, &certain));
  return certain ? SetOutput(s, 0, kept) : OkStatus();
}

OP(Reshape) {
  return {
      .doc =
          "Gives the elements another shape. One size may be -1: it is computed from the "
          "others.",
      .inputs = {{"tensor", "T"}, {"shape", "Tshape"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"Tshape", kIndex, DType::kInt32}},
      .shape = ReshapeShape,
      .gradient = ReshapeGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{2}, {3, -1}}}}}},
      .is_view = true,
  };
}

OP(ExpandDims) {
  return {
      .doc = "Inserts a dimension of size 1 before dimension `dim`.",
      .inputs = {{"input", "T"}, {"dim", "Tdim"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"Tdim", kIndex, DType::kInt32}},
      .shape = ExpandDimsShape,
      .gradient = ReshapeGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{.values = {1}}}}}},
      .is_view = true,
  };
}

OP(Squeeze) {
  return {
      .doc =
          "Removes the dimensions `squeeze_dims`, which must have size 1; all dimensions of "
          "size 1 if squeeze_dims is empty.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"squeeze_dims", IntList{}, std::vector<int64_t>{}}},
      .shape = SqueezeShape,
      .gradient = ReshapeGradient,
      .examples = {{.inputs = {{{{1, 2, 1, 3}}}}},
                   {.inputs = {{{{1, 2, 1, 3}}}},
                    .attrs = {{"squeeze_dims", std::vector<int64_t>{2}}}}},
      .is_view = true,
  };
}

KERNEL_ANY_TYPE(Reshape, ReshapeKernel);
KERNEL_ANY_TYPE(ExpandDims, ExpandDimsKernel);
KERNEL_ANY_TYPE(Squeeze, SqueezeKernel);

// The GPU uses the same kernels, because they access no element.
KERNEL_DEF({.op = "Reshape", .device = "GPU", .host_args = {"shape"}, .make = Make<ReshapeKernel>});
KERNEL_DEF(
    {.op = "ExpandDims", .device = "GPU", .host_args = {"dim"}, .make = Make<ExpandDimsKernel>});
KERNEL_DEF({.op = "Squeeze", .device = "GPU", .make = Make<SqueezeKernel>});

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Gather (along dimension 0) and GatherV2 (along any dimension, in batches): copy rows of a table
// by index.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/gather_rows.h"

namespace penstock {
namespace {

// Returns `batch_dims`; a negative one counts from the end of the indices' dimensions.
// InvalidArgument if it is out of range, or greater than the axis.
StatusOr<int> BatchDims(int64_t batch_dims, int indices_rank, int axis) {
  if (batch_dims < -indices_rank || batch_dims > indices_rank) {
    return InvalidArgument("batch_dims = ", batch_dims, " is not in [", -indices_rank, ", ",
                           indices_rank, "]");
  }
  if (batch_dims < 0) batch_dims += indices_rank;
  if (batch_dims > axis) {
    return InvalidArgument("batch_dims (", batch_dims, ") must be less than or equal to axis (",
                           axis, ")");
  }
  return static_cast<int>(batch_dims);
}

// Returns params[:axis] + indices[batch_dims:] + params[axis + 1:].
Dims GatheredDims(absl::Span<const int64_t> params, absl::Span<const int64_t> indices, int axis,
                  int batch_dims) {
  Dims dims(params.begin(), params.begin() + axis);
  dims.insert(dims.end(), indices.begin() + batch_dims, indices.end());
  dims.insert(dims.end(), params.begin() + axis + 1, params.end());
  return dims;
}

Status GatherInto(KernelContext& ctx, int64_t wanted_axis, int64_t wanted_batch_dims) {
  const Tensor &params = ctx.input(0), &indices = ctx.input(1);
  if (params.rank() < 1) return InvalidArgument("params must be at least 1 dimensional");
  ASSIGN_OR_RETURN(const int axis, NormalAxis(wanted_axis, params.rank(), "axis"));
  ASSIGN_OR_RETURN(const int batch_dims, BatchDims(wanted_batch_dims, indices.rank(), axis));
  GatherPlan plan{.rows = params.dim(axis)};
  for (int i = 0; i < batch_dims; ++i) {
    if (params.dim(i) != indices.dim(i)) {
      return InvalidArgument("params.shape[", i, "]: ", params.dim(i),
                             " should be equal to indices.shape[", i, "]: ", indices.dim(i));
    }
    plan.batches *= params.dim(i);
  }
  for (int i = batch_dims; i < axis; ++i) plan.outer *= params.dim(i);
  for (int i = axis + 1; i < params.rank(); ++i) plan.row_elements *= params.dim(i);
  plan.count = 1;
  for (int i = batch_dims; i < indices.rank(); ++i) plan.count *= indices.dim(i);
  ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Make(GatheredDims(params.shape().dims(), indices.shape().dims(), axis, batch_dims)));
  RETURN_IF_ERROR(CheckIndices(indices, params.dim(axis), "indices"));
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
  if (shape.num_elements() == 0) return OkStatus();
  GatherRows(params.dtype(), plan, params.raw_data(), indices, output->mutable_raw_data(),
             ctx.threads());
  return OkStatus();
}

class GatherKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override { return GatherInto(ctx, 0, 0); }
};

class GatherV2Kernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("batch_dims", &batch_dims_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t axis, IntScalar(ctx.input(2), "axis"));
    return GatherInto(ctx, axis, batch_dims_);
  }

 private:
  int64_t batch_dims_ = 0;
};

Status GatherShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape params, s.WithRankAtLeast(0, 1));
  if (!params.known_rank() || !s.input(1).known_rank()) return OkStatus();
  return SetOutput(s, 0, GatheredDims(params.dims(), s.input(1).dims(), 0, 0));
}

Status GatherV2Shape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape params, s.WithRankAtLeast(0, 1));
  const PartialShape& indices = s.input(1);
  std::vector<int64_t> wanted;
  if (!params.known_rank() || !indices.known_rank()) return OkStatus();
  if (!s.ConstantInts(2, &wanted) || wanted.size() != 1) return OkStatus();
  ASSIGN_OR_RETURN(const int axis, NormalAxis(wanted[0], params.rank(), "axis"));
  ASSIGN_OR_RETURN(const int batch_dims,
                   BatchDims(s.attr<int64_t>("batch_dims"), indices.rank(), axis));
  return SetOutput(s, 0, GatheredDims(params.dims(), indices.dims(), axis, batch_dims));
}

Output Vector(const GradientScope& g, std::vector<int32_t> values) {
  return g.Const(Tensor::Vector<int32_t>(values));
}

// Returns the gradient of params in sparse form: the rows of dy, with the indices of the rows of
// params from which they were gathered.
Gradient RowsGradient(const GradientScope& g) {
  const Output shape = ShapeOf(g.x(0), DType::kInt64);
  const Output flat = Vector(g, {-1});
  const Output tail = Call("StridedSlice", {shape, Vector(g, {1}), Vector(g, {0}), Vector(g, {1})},
                           {{"end_mask", 1}});
  const Output count = Reshape(SizeOf(g.x(1), DType::kInt64), flat);
  const Output rows = Reshape(g.dy(), ConcatV2({count, tail}, g.Const<int32_t>(0)));
  return Gradient(rows, Reshape(g.x(1), flat), shape);
}

// Returns elements [begin, end) of a vector; if `end` is invalid, up to the vector's end.
Output Part(const GradientScope& g, Output vector, Output begin, Output end) {
  const Output flat = Vector(g, {1});
  const bool open = !end.valid();
  return Call("StridedSlice",
              {vector, Reshape(begin, flat), Reshape(open ? begin : end, flat), Vector(g, {1})},
              {{"end_mask", open ? 1 : 0}});
}

// Returns the gradient of params for any axis and batch_dims: moves the gathered dimensions of dy
// to the front, adds them up by index, and moves the sums back. With batches, index i of batch b
// stands for row b * rows + i.
Gradient DenseGradient(const GradientScope& g) {
  const Output zero = g.Const<int32_t>(0), one = g.Const<int32_t>(1);
  const Output minus_one = Vector(g, {-1});
  const Output params_shape = ShapeOf(g.x(0)), indices_shape = ShapeOf(g.x(1));
  const Output rank = RankOf(g.x(0));
  Output axis = Cast(g.x(2), DType::kInt32);
  axis = Call("FloorMod", {axis, rank});  // counted from the front
  Output batch = g.Const<int32_t>(static_cast<int32_t>(g.attr<int64_t>("batch_dims")));
  if (g.attr<int64_t>("batch_dims") < 0) batch = batch + RankOf(g.x(1));

  const auto product = [&](Output dims) { return Call("Prod", {dims, zero}); };
  const Output batches = product(Part(g, params_shape, zero, batch));
  const Output outer = product(Part(g, params_shape, batch, axis));
  const Output rows = Part(g, params_shape, axis, axis + one);
  const Output inner = product(Part(g, params_shape, axis + one, Output()));
  const Output count = product(Part(g, indices_shape, batch, Output()));
  const auto dims = [&](const Outputs& each) {
    Outputs vectors;
    for (const Output dim : each) vectors.push_back(Reshape(dim, minus_one));
    return ConcatV2(vectors, zero);
  };

  // dy as [batches, outer, count, inner] -> [batches * count, outer, inner].
  const Output dy = Reshape(g.dy(), dims({batches, outer, count, inner}));
  const Output listed =
      Reshape(Transpose(dy, Vector(g, {0, 2, 1, 3})), dims({batches * count, outer, inner}));
  const Output first_row =
      Reshape(Range(zero, batches, one) * Reshape(rows, Vector(g, {})), Vector(g, {-1, 1}));
  const Output indices = Reshape(g.x(1), dims({batches, count}));
  const Output segments = Reshape(indices + Cast(first_row, indices.dtype()), minus_one);
  const Output summed =
      Call("UnsortedSegmentSum", {listed, segments, batches * Reshape(rows, Vector(g, {}))});
  // [batches * rows, outer, inner] -> [batches, outer, rows, inner] -> the shape of params.
  const Output boxed = Reshape(summed, dims({batches, rows, outer, inner}));
  return Gradient(Reshape(Transpose(boxed, Vector(g, {0, 2, 1, 3})), params_shape));
}

bool IsConstantZero(Output axis) {
  const Tensor* value = axis.constant();
  if (value == nullptr || value->num_elements() != 1) return false;
  return value->dtype() == DType::kInt64 ? value->scalar<int64_t>() == 0
                                         : value->scalar<int32_t>() == 0;
}

std::vector<Gradient> GatherGradient(const GradientScope& g) {
  return {RowsGradient(g), Gradient()};
}
std::vector<Gradient> GatherV2Gradient(const GradientScope& g) {
  const bool rows = g.attr<int64_t>("batch_dims") == 0 && IsConstantZero(g.x(2));
  return {rows ? RowsGradient(g) : DenseGradient(g), Gradient(), Gradient()};
}

OP(Gather) {
  return {
      .doc = "Gathers rows of params: output[i, ...] = params[indices[i], ...].",
      .inputs = {{"params", "Tparams"}, {"indices", "Tindices"}},
      .outputs = {{"output", "Tparams"}},
      .types = {{"Tparams", kAnyType}, {"Tindices", kIndex}},
      .attrs = {{"validate_indices", true}},
      .shape = GatherShape,
      .gradient = GatherGradient,
      .examples = {{.inputs = {{{{4, 2}}}, {{{3}, {3, 0, 3}}}}}},
  };
}

OP(GatherV2) {
  return {
      .doc =
          "Gathers slices of params along `axis`, at `indices`. The first batch_dims dimensions of "
          "params and indices must be equal: each batch is gathered separately.",
      .inputs = {{"params", "Tparams"}, {"indices", "Tindices"}, {"axis", "Taxis"}},
      .outputs = {{"output", "Tparams"}},
      .types = {{"Tparams", kAnyType}, {"Tindices", kIndex}, {"Taxis", kIndex}},
      .attrs = {{"batch_dims", 0}},
      .shape = GatherV2Shape,
      .gradient = GatherV2Gradient,
      .examples = {{.inputs = {{{{4, 2}}}, {{{3}, {3, 0, 3}}}, {{.values = {0}}}}},
                   {.inputs = {{{{2, 4, 3}}}, {{{3}, {3, 0, 3}}}, {{.values = {-2}}}}},
                   {.inputs = {{{{2, 4, 3}}}, {{{2, 2}, {3, 0, 1, 1}}}, {{.values = {1}}}},
                    .attrs = {{"batch_dims", 1}}},
                   {.inputs = {{{{2, 3, 4}}}, {{{2, 2}, {3, 0, 1, 1}}}, {{.values = {2}}}},
                    .attrs = {{"batch_dims", 1}}}},
  };
}

KERNEL_ANY_TYPE(Gather, GatherKernel);
KERNEL_ANY_TYPE(GatherV2, GatherV2Kernel);

}  // namespace
}  // namespace penstock

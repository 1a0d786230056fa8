// SPDX-License-Identifier: Apache-2.0
//
// RaggedTensorToTensor: converts a ragged tensor to a dense one; rows are truncated or padded to
// equal lengths.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/ragged/partition.h"

namespace penstock {
namespace {

constexpr int kFirstPartition = 3;  // after shape, values, default_value

// Returns the output's shape: the requested sizes; a size of -1 becomes the least that holds all
// items. InvalidArgument if the request does not fit the tensor's dimensions.
StatusOr<Shape> OutputShape(const Tensor& asked, const RowPartitions& partitions,
                            const Shape& values) {
  Dims dims = {partitions.rows};
  for (const RowPartition& level : partitions.levels) dims.push_back(level.Width());
  dims.insert(dims.end(), values.dims().begin() + 1, values.dims().end());
  if (asked.rank() == 0) {
    ASSIGN_OR_RETURN(const int64_t size, IntScalar(asked, "shape"));
    if (size == -1) return Shape::Make(dims);
    return InvalidArgument("the only scalar that shape may be is -1, is ", size);
  }
  ASSIGN_OR_RETURN(const Dims sizes, IntVector(asked, "shape"));
  if (sizes.size() != dims.size()) {
    return InvalidArgument("shape has ", sizes.size(), " elements, the ragged tensor ", dims.size(),
                           " dimensions");
  }
  const size_t inner = dims.size() - (values.rank() - 1);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (sizes[d] < -1) return InvalidArgument("Dimension ", sizes[d], " must be >= -1");
    if (sizes[d] >= 0 && d >= inner && sizes[d] != dims[d]) {
      return InvalidArgument("shape[", d, "] is ", sizes[d], ", the values have ", dims[d]);
    }
    if (sizes[d] >= 0) dims[d] = sizes[d];
  }
  return Shape::Make(dims);
}

// Returns default_value, broadcast to the shape of one value. InvalidArgument if it does not
// broadcast.
StatusOr<Tensor> DefaultElement(KernelContext& ctx, const Tensor& given, const Shape& values) {
  Shape each = values;
  each.RemoveDim(0);
  const int missing = each.rank() - given.rank();
  bool fits = missing >= 0;
  for (int d = 0; fits && d < given.rank(); ++d) {
    fits = given.dim(d) == 1 || given.dim(d) == each.dim(missing + d);
  }
  if (!fits) {
    return InvalidArgument("default_value of shape ", given.shape().ToString(),
                           " cannot be broadcast to that of a value, ", each.ToString());
  }
  ASSIGN_OR_RETURN(Tensor element, ctx.Temporary(given.dtype(), each));
  for (int64_t i = 0; i < each.num_elements(); ++i) {
    int64_t from = 0, stride = 1, rest = i;
    for (int d = given.rank() - 1; d >= 0; --d) {
      const int64_t size = each.dim(missing + d);
      if (given.dim(d) != 1) from += rest % size * stride;
      stride *= given.dim(d);
      rest /= size;
    }
    CopyElements(given.dtype(), ElementAt(given.raw_data(), given.dtype(), from),
                 ElementAt(element.mutable_raw_data(), given.dtype(), i), 1);
  }
  return element;
}

// Returns, for each item, the index of its row in the output, or -1 if the row is cut off.
StatusOr<Tensor> Destinations(KernelContext& ctx, const RowPartitions& partitions,
                              const Shape& output) {
  ASSIGN_OR_RETURN(Tensor places, ctx.Temporary(DType::kInt64, Shape{partitions.rows}));
  for (int64_t row = 0; row < partitions.rows; ++row) {
    places.mutable_data<int64_t>()[row] = row < output.dim(0) ? row : -1;
  }
  for (size_t level = 0; level < partitions.levels.size(); ++level) {
    const RowPartition& partition = partitions.levels[level];
    const int64_t width = output.dim(static_cast<int>(level) + 1);
    ASSIGN_OR_RETURN(Tensor inner, ctx.Temporary(DType::kInt64, Shape{partition.items()}));
    const int64_t* outer = places.data<int64_t>();
    int64_t* to = inner.mutable_data<int64_t>();
    partition.ForEachItem([&](int64_t item, int64_t row, int64_t place) {
      to[item] = outer[row] >= 0 && place < width ? outer[row] * width + place : -1;
    });
    places = std::move(inner);
  }
  return places;
}

class RaggedToTensorKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("row_partition_types", &types_));
    return CheckPartitionTypes(types_, static_cast<int>(node.input_types.size()) - kFirstPartition);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(1);
    if (values.rank() == 0) return InvalidArgument("values must not be a scalar");
    ASSIGN_OR_RETURN(const RowPartitions partitions,
                     RowPartitions::FromInputs(ctx, kFirstPartition, types_, values.dim(0)));
    ASSIGN_OR_RETURN(const Shape shape, OutputShape(ctx.input(0), partitions, values.shape()));
    ASSIGN_OR_RETURN(const Tensor element, DefaultElement(ctx, ctx.input(2), values.shape()));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    if (shape.num_elements() == 0) return OkStatus();
    ASSIGN_OR_RETURN(const Tensor places, Destinations(ctx, partitions, shape));
    const DType dtype = values.dtype();
    const int64_t length = element.num_elements(), rows = shape.num_elements() / length;
    void* const to = out->mutable_raw_data();
    for (int64_t row = 0; row < rows; ++row) {
      CopyElements(dtype, element.raw_data(), ElementAt(to, dtype, row * length), length);
    }
    for (int64_t i = 0; i < places.num_elements(); ++i) {
      const int64_t place = places.data<int64_t>()[i];
      if (place < 0) continue;
      CopyElements(dtype, ElementAt(values.raw_data(), dtype, i * length),
                   ElementAt(to, dtype, place * length), length);
    }
    return OkStatus();
  }

 private:
  std::vector<std::string> types_;
};

Status ToTensorShape(ShapeScope& s) {
  const auto& types = s.attr<std::vector<std::string>>("row_partition_types");
  RETURN_IF_ERROR(CheckPartitionTypes(types, s.num_inputs() - kFirstPartition));
  ASSIGN_OR_RETURN(const PartialShape values, s.WithRankAtLeast(1, 1));
  if (!values.known_rank()) return OkStatus();
  const int levels = RaggedRank(types);
  PartialShape out = PartialShape::UnknownOfRank(levels + values.rank());
  if (!out.known_rank()) return OkStatus();  // more dimensions than any tensor has
  for (int d = 1; d < values.rank(); ++d) out.set_dim(levels + d, values.dim(d));
  std::vector<int64_t> sizes;
  if (s.ConstantInts(0, &sizes) && static_cast<int>(sizes.size()) == out.rank()) {
    for (int d = 0; d <= levels; ++d) {
      if (sizes[d] >= 0) out.set_dim(d, sizes[d]);
    }
  }
  s.set_output(0, std::move(out));
  return OkStatus();
}

// Converts a ragged tensor in which the value of each item is its own index, from 1; so the result
// tells where each value is; 0 is padding.
std::vector<Gradient> ToTensorGradient(const GradientScope& g) {
  const Output values = g.x(1);
  const auto vector = [&](int32_t value) { return g.Const(Tensor::Vector<int32_t>({value})); };
  const Output zero = g.Const<int32_t>(0), one = g.Const<int32_t>(1);
  const auto after = [&](Output x, int32_t begin) {
    return Call("StridedSlice", {x, vector(begin), vector(0), vector(1)}, {{"end_mask", 1}});
  };
  const auto& types = g.attr<std::vector<std::string>>("row_partition_types");
  const Output count = Gather(ShapeOf(values), zero, zero) + 1.0;
  const Output ragged_shape =
      Call("StridedSlice", {ShapeOf(g.y()), vector(0), vector(RaggedRank(types) + 1), vector(1)});
  Outputs partitions;
  for (int i = kFirstPartition; i < g.num_inputs(); ++i) partitions.push_back(g.x(i));
  const Output sources =
      CallN("RaggedTensorToTensor", {ragged_shape, Range(one, count, one), zero, partitions},
            {{"row_partition_types", types}})[0];
  const Output flat = Reshape(g.dy(), ConcatV2({vector(-1), after(ShapeOf(values), 1)}, zero));
  const Output sums = Call("UnsortedSegmentSum", {flat, Reshape(sources, vector(-1)), count});
  std::vector<Gradient> dx(g.num_inputs());
  dx[1] = after(sums, 1);
  dx[2] = SumToShapeOf(Gather(sums, zero, zero), g.x(2));
  return dx;
}

}  // namespace

OP(RaggedTensorToTensor) {
  return {
      .doc =
          "Converts a ragged tensor to a dense one of the given `shape`; a dimension of -1 "
          "is as large as needed. Rows are cut, or padded with default_value.",
      .inputs = {{"shape", "Tshape"},
                 {"values", "T"},
                 {"default_value", "T"},
                 {"row_partition_tensors", Repeat("num_row_partition_tensors", "Tindex")}},
      .outputs = {{"result", "T"}},
      .types = {{"T", kAnyType}, {"Tindex", kIndex}, {"Tshape", kIndex}},
      .attrs = {{"num_row_partition_tensors", Ints{.min = 1}},
                {"row_partition_types", StringList{}}},
      .shape = ToTensorShape,
      .gradient = ToTensorGradient,
      .examples = {{.inputs = {{{{2}, {-1, 2}}}, {{{5}}}, {{}}, {{{4}, {0, 3, 3, 5}}}},
                    .attrs = {{"row_partition_types", std::vector<std::string>{"ROW_SPLITS"}}}},
                   {.inputs = {{{{}, {-1}}},
                               {{{5, 2}}},
                               {{{1}}},
                               {{{}, {2}}, {{3}, {0, 0, 1}}, {{5}, {0, 0, 0, 2, 2}}}},
                    .attrs = {{"row_partition_types",
                               std::vector<std::string>{"FIRST_DIM_SIZE", "VALUE_ROWIDS",
                                                        "VALUE_ROWIDS"}}}}},
  };
}
KERNEL_ANY_TYPE(RaggedTensorToTensor, RaggedToTensorKernel);

}  // namespace penstock

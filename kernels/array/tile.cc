// SPDX-License-Identifier: Apache-2.0
//
// Tile: repeats a tensor along its dimensions; TileGrad: sums over the repetitions.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_add.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

Status CheckMultiples(absl::Span<const int64_t> multiples, int rank) {
  if (static_cast<int>(multiples.size()) != rank) {
    return InvalidArgument("Expected multiples argument to be a vector of length ", rank,
                           " but got length ", multiples.size());
  }
  for (int i = 0; i < rank; ++i) {
    if (multiples[i] < 0) {
      return InvalidArgument("Expected multiples[", i, "] >= 0, but got ", multiples[i]);
    }
  }
  return OkStatus();
}

class TileKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Dims multiples, IntVector(ctx.input(1), "multiples"));
    RETURN_IF_ERROR(CheckMultiples(multiples, input.rank()));
    Dims dims;
    for (int i = 0; i < input.rank(); ++i) {
      dims.push_back(MultiplyDims(input.dim(i), multiples[i]));
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    if (shape == input.shape()) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return OkStatus();
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const Dims from = DenseStrides(input.shape().dims()), to = DenseStrides(dims);
    StridedCopy copy;
    for (int i = 0; i < input.rank(); ++i) {
      copy.Add(multiples[i], 0, input.dim(i) * to[i]);
      copy.Add(input.dim(i), from[i], to[i]);
    }
    CopyStrided(input.dtype(), copy, input.raw_data(), output->mutable_raw_data(), ctx.threads());
    return OkStatus();
  }
};

Status TileShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape vector, s.WithRank(1, 1));
  const PartialShape& input = s.input(0);
  const int64_t rank = input.known_rank() ? input.rank() : vector.dim(0);
  if (rank < 0) return OkStatus();
  if (rank > kMaxRank) return InvalidArgument("multiples has ", rank, " elements");
  Dims dims(rank, PartialShape::kUnknown);
  std::vector<int64_t> multiples;
  if (s.ConstantInts(1, &multiples)) {
    RETURN_IF_ERROR(CheckMultiples(multiples, static_cast<int>(rank)));
    for (int i = 0; input.known_rank() && i < rank; ++i) {
      dims[i] = MultiplyDims(input.dim(i), multiples[i]);
    }
  }
  return SetOutput(s, 0, dims);
}

// Reshapes dy to [multiples[0], shape[0], multiples[1], shape[1], ...] and sums it over the even
// dimensions.
std::vector<Gradient> TileGradient(const GradientScope& g) {
  const Output multiples = g.x(1);
  const Output shape = ShapeOf(g.x(), multiples.dtype());
  const Output minus_one = g.Const(Tensor::Vector<int32_t>({-1}));
  const Output split = Reshape(Pack({multiples, shape}, 1), minus_one);
  const Output even = Range(g.Const<int32_t>(0), SizeOf(split), g.Const<int32_t>(2));
  // The Reshape gives shape inference the shape of x.
  return {Reshape(Sum(Reshape(g.dy(), split), even), shape), Gradient()};
}

template <class T>
class TileGradKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Dims multiples, IntVector(ctx.input(1), "multiples"));
    RETURN_IF_ERROR(CheckMultiples(multiples, input.rank()));
    Dims dims;
    for (int i = 0; i < input.rank(); ++i) {
      if (multiples[i] == 0 || input.dim(i) % multiples[i] != 0) {
        return InvalidArgument("dimension ", i, " of the input, ", input.dim(i),
                               ", is not a multiple of multiples[", i, "] = ", multiples[i]);
      }
      dims.push_back(input.dim(i) / multiples[i]);
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape(dims), &output));
    Zero(*output, ctx.threads());
    const Dims from = DenseStrides(input.shape().dims()), to = DenseStrides(dims);
    StridedCopy copy;
    for (int i = 0; i < input.rank(); ++i) {
      copy.Add(multiples[i], dims[i] * from[i], 0);
      copy.Add(dims[i], from[i], to[i]);
    }
    AddStrided(copy, input.data<T>(), output->mutable_data<T>());
    return OkStatus();
  }
};

Status TileGradShape(ShapeScope& s) {
  const PartialShape& input = s.input(0);
  std::vector<int64_t> multiples;
  if (!input.known_rank()) return OkStatus();
  PartialShape shape = PartialShape::UnknownOfRank(input.rank());
  if (s.ConstantInts(1, &multiples)) {
    RETURN_IF_ERROR(CheckMultiples(multiples, input.rank()));
    for (int i = 0; i < input.rank(); ++i) {
      if (input.dim(i) >= 0 && multiples[i] > 0) shape.set_dim(i, input.dim(i) / multiples[i]);
    }
  }
  s.set_output(0, shape);
  return OkStatus();
}

OP(Tile) {
  return {
      .doc = "Repeats the input multiples[i] times along dimension i.",
      .inputs = {{"input", "T"}, {"multiples", "Tmultiples"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"Tmultiples", kIndex, DType::kInt32}},
      .shape = TileShape,
      .gradient = TileGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{2}, {2, 3}}}}}},
  };
}

OP(TileGrad) {
  return {
      .doc = "The gradient of Tile: the sum over the repetitions. Only old graphs use it.",
      .inputs = {{"input", "T"}, {"multiples", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}},
      .shape = TileGradShape,
      .examples = {{.inputs = {{{{4, 3}}}, {{{2}, {2, 1}}}}}},
  };
}

KERNEL_ANY_TYPE(Tile, TileKernel);
KERNEL(TileGrad, TileGradKernel, NUMBER_TYPES);

}  // namespace
}  // namespace penstock

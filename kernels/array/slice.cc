// SPDX-License-Identifier: Apache-2.0
//
// Slice: copies a box of a tensor that starts at `begin` and has size `size` (-1: up to the end).
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/share.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// Replaces each -1 in `size` by the number of remaining elements, and checks the box.
// InvalidArgument unless it lies within `shape`.
Status CheckBox(const Shape& shape, const Dims& begin, Dims* size) {
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t dim = shape.dim(i);
    if (begin[i] < 0 || begin[i] > dim) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", dim, "], but got ", begin[i]);
    }
    if ((*size)[i] == -1) (*size)[i] = dim - begin[i];
    if ((*size)[i] < 0 || (*size)[i] > dim - begin[i]) {
      return InvalidArgument("Expected size[", i, "] in [0, ", dim - begin[i], "], but got ",
                             (*size)[i]);
    }
  }
  return OkStatus();
}

// Returns true if the box consists of complete rows of dimension 0.
bool WholeRows(const Shape& shape, const Shape& box) {
  for (int i = 1; i < shape.rank(); ++i) {
    if (box.dim(i) != shape.dim(i)) return false;
  }
  return shape.rank() > 0;
}

class SliceKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Dims begin, IntVector(ctx.input(1), "begin", input.rank()));
    ASSIGN_OR_RETURN(Dims size, IntVector(ctx.input(2), "size", input.rank()));
    RETURN_IF_ERROR(CheckBox(input.shape(), begin, &size));
    const Shape box(size);
    if (box == input.shape()) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return OkStatus();
    }
    const Dims from = DenseStrides(input.shape().dims());
    int64_t offset = 0;
    for (int i = 0; i < input.rank(); ++i) offset += begin[i] * from[i];
    if (WholeRows(input.shape(), box) && ShouldShare(input, offset, box.num_elements())) {
      ctx.SetOutput(0, input.Slice(begin[0], begin[0] + size[0]));
      return OkStatus();
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, box, &output));
    const Dims to = DenseStrides(size);
    StridedCopy copy;
    for (int i = 0; i < input.rank(); ++i) copy.Add(size[i], from[i], to[i]);
    CopyStrided(input.dtype(), copy, ElementAt(input.raw_data(), input.dtype(), offset),
                output->mutable_raw_data(), ctx.threads());
    return OkStatus();
  }
};

Status SliceShape(ShapeScope& s) {
  int64_t rank = s.input(0).rank();
  for (int i = 1; i <= 2; ++i) {
    ASSIGN_OR_RETURN(const PartialShape vector, s.WithRank(i, 1));
    if (rank < 0) rank = vector.dim(0);
    if (vector.dim(0) >= 0 && vector.dim(0) != rank) {
      return InvalidArgument("begin and size must have one element per dimension of the input, ",
                             rank, "; one has ", vector.dim(0));
    }
  }
  if (rank < 0) return OkStatus();
  if (rank > kMaxRank) return InvalidArgument("begin has ", rank, " elements");
  std::vector<int64_t> begin, size;
  const bool begin_known = s.ConstantInts(1, &begin), size_known = s.ConstantInts(2, &size);
  Dims dims(rank, PartialShape::kUnknown);
  for (int i = 0; i < rank && size_known; ++i) {
    if (size[i] >= 0) dims[i] = size[i];
    const int64_t whole = s.input(0).known_rank() ? s.input(0).dim(i) : PartialShape::kUnknown;
    if (size[i] == -1 && begin_known && whole >= 0) dims[i] = whole - begin[i];
    if (size[i] < -1 || (whole >= 0 && dims[i] > whole) || (begin_known && begin[i] < 0) ||
        dims[i] < PartialShape::kUnknown) {
      return InvalidArgument("the box leaves dimension ", i, " of the input, ",
                             s.input(0).ToString());
    }
  }
  return SetOutput(s, 0, dims);
}

// Returns dy padded with zeros to the shape of the input.
std::vector<Gradient> SliceGradient(const GradientScope& g) {
  const Output begin = g.x(1);
  const Output after = ShapeOf(g.x(), begin.dtype()) - begin - ShapeOf(g.y(), begin.dtype());
  return {Call("Pad", {g.dy(), Pack({begin, after}, 1)}), Gradient(), Gradient()};
}

OP(Slice) {
  return {
      .doc =
          "Returns the part of the input that begins at `begin` and has the given `size` "
          "(-1: up to the end).",
      .inputs = {{"input", "T"}, {"begin", "Index"}, {"size", "Index"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"Index", kIndex}},
      .shape = SliceShape,
      .gradient = SliceGradient,
      .examples = {{.inputs = {{{{3, 4}}}, {{{2}, {1, 0}}}, {{{2}, {2, -1}}}}}},
  };
}
KERNEL_ANY_TYPE(Slice, SliceKernel);

}  // namespace
}  // namespace penstock

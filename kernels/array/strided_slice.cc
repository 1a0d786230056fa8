// SPDX-License-Identifier: Apache-2.0
//
// Python's slicing: StridedSlice returns the elements that an expression selects; StridedSliceGrad
// places a gradient at these elements of a tensor of zeros.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/share.h"
#include "kernels/array/strided_box.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// Returns true if the box consists of consecutive rows of dimension 0.
bool WholeRows(const StridedBox& box, const Shape& whole) {
  for (size_t i = 1; i < box.dims.size(); ++i) {
    if (box.dims[i].stride != 1 || box.dims[i].count != whole.dim(i)) return false;
  }
  return !box.dims.empty() && box.dims[0].stride == 1 && box.dims[0].count > 0;
}

class StridedSliceKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return masks_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const StridedBox box, ResolveStridedSlice(masks_, ctx.input(1), ctx.input(2),
                                                               ctx.input(3), input.shape()));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(box.shape));
    if (box.whole) {
      ctx.SetOutput(0, ctx.TakeInput(0).Reshaped(shape));
      return OkStatus();
    }
    StridedCopy copy;
    const int64_t offset = WalkBox(box, input.shape(), BoxSide::kSource, &copy);
    if (WholeRows(box, input.shape()) && ShouldShare(input, offset, shape.num_elements())) {
      const int64_t begin = box.dims[0].begin;
      ctx.SetOutput(0, input.Slice(begin, begin + box.dims[0].count).Reshaped(shape));
      return OkStatus();
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    CopyStrided(input.dtype(), copy, ElementAt(input.raw_data(), input.dtype(), offset),
                output->mutable_raw_data(), ctx.threads());
    return OkStatus();
  }

 private:
  StridedSliceMasks masks_;
};

class StridedSliceGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return masks_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    ASSIGN_OR_RETURN(const StridedBox box,
                     ResolveStridedSlice(masks_, ctx.input(1), ctx.input(2), ctx.input(3), shape));
    const Tensor& dy = ctx.input(4);
    RETURN_IF_ERROR(CheckValueOfBox(box, dy, "dy"));
    if (box.whole) {
      ctx.SetOutput(0, ctx.TakeInput(4).Reshaped(shape));
      return OkStatus();
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    Zero(*output, ctx.threads());
    StoreInBox(box, dy, *output, ctx.threads());
    return OkStatus();
  }

 private:
  StridedSliceMasks masks_;
};

Status StridedSliceShape(ShapeScope& s) {
  int64_t count = PartialShape::kUnknown;
  Dims vectors[3];
  bool known[3];
  for (int i = 0; i < 3; ++i) {
    std::vector<int64_t> values;
    ASSIGN_OR_RETURN(const PartialShape shape, s.WithRank(i + 1, 1));
    if (count < 0) count = shape.dim(0);
    if (shape.dim(0) >= 0 && shape.dim(0) != count) {
      return InvalidArgument("begin, end and strides must have equally many elements; got ", count,
                             " and ", shape.dim(0));
    }
    known[i] = s.ConstantInts(i + 1, &values);
    if (known[i]) vectors[i].assign(values.begin(), values.end());
  }
  if (count < 0 || !s.input(0).known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(const StridedBox box,
                   ResolveStridedSlice(StridedSliceMasks::Of(s.attrs()),
                                       {.begin = known[0] ? &vectors[0] : nullptr,
                                        .end = known[1] ? &vectors[1] : nullptr,
                                        .strides = known[2] ? &vectors[2] : nullptr,
                                        .count = count},
                                       s.input(0)));
  return SetOutput(s, 0, box.shape);
}

std::vector<Gradient> StridedSliceGradient(const GradientScope& g) {
  const Output shape = ShapeOf(g.x(), g.x(1).dtype());
  return {Call("StridedSliceGrad", {shape, g.x(1), g.x(2), g.x(3), g.dy()},
               StridedSliceMasks::AttrsOf(g.attrs())),
          Gradient(), Gradient(), Gradient()};
}

std::vector<Gradient> StridedSliceGradGradient(const GradientScope& g) {
  return {Gradient(), Gradient(), Gradient(), Gradient(),
          Call("StridedSlice", {g.dy(), g.x(1), g.x(2), g.x(3)},
               StridedSliceMasks::AttrsOf(g.attrs()))};
}

OP(StridedSlice) {
  return {
      .doc =
          "Returns the elements that a Python slice expression selects. Strides may be "
          "negative.",
      .inputs = {{"input", "T"}, {"begin", "Index"}, {"end", "Index"}, {"strides", "Index"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"Index", kIndex}},
      .attrs = StridedSliceMasks::AttrDefs(),
      .shape = StridedSliceShape,
      .gradient = StridedSliceGradient,
      .examples =
          {{.inputs = {{{{3, 4, 5}}}, {{{3}, {1, 3, 4}}}, {{{3}, {3, 0, 0}}}, {{{3}, {1, -2, 1}}}},
            .attrs = {{"shrink_axis_mask", 4}}},
           {.inputs = {{{{3, 4}}}, {{{3}, {0, 0, 1}}}, {{{3}, {0, 0, 3}}}, {{{3}, {1, 1, 1}}}},
            .attrs = {{"ellipsis_mask", 2}, {"new_axis_mask", 1}}}},
  };
}

OP(StridedSliceGrad) {
  return {
      .doc =
          "The gradient of StridedSlice: returns zeros of shape `shape`, with dy at the "
          "elements that StridedSlice reads.",
      .inputs = {{"shape", "Index"},
                 {"begin", "Index"},
                 {"end", "Index"},
                 {"strides", "Index"},
                 {"dy", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}, {"Index", kIndex}},
      .attrs = StridedSliceMasks::AttrDefs(),
      .shape = [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
        s.set_output(0, std::move(shape));
        return OkStatus();
      },
      .gradient = StridedSliceGradGradient,
      .examples = {{.inputs = {{{{2}, {3, 4}}},
                               {{{2}, {1, 3}}},
                               {{{2}, {3, 0}}},
                               {{{2}, {1, -2}}},
                               {{{2, 2}}}}}},
  };
}
KERNEL_ANY_TYPE(StridedSlice, StridedSliceKernel);
KERNEL_ANY_TYPE(StridedSliceGrad, StridedSliceGradKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Python's slicing: StridedSlice reads what an expression selects, StridedSliceGrad puts a gradient
// back there, StridedSliceAssign and ResourceStridedSliceAssign write there in a variable.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/op/variable.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/share.h"
#include "kernels/array/strided_box.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// Where the box begins in a dense tensor of shape `whole`, and how to walk it there, as the source
// or as the destination; the other side is dense.
int64_t Walk(const StridedBox& box, const Shape& whole, bool box_is_source, StridedCopy* copy) {
  const Dims strides = DenseStrides(whole.dims()), dense = DenseStrides(box.counts());
  int64_t offset = 0;
  for (size_t i = 0; i < box.dims.size(); ++i) {
    const StridedBox::Dim& dim = box.dims[i];
    const int64_t there = dim.stride * strides[i];
    offset += dim.begin * strides[i];
    copy->Add(dim.count, box_is_source ? there : dense[i], box_is_source ? dense[i] : there);
  }
  return offset;
}

// True where the box is a run of rows of dimension 0, in order.
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
    const int64_t offset = Walk(box, input.shape(), true, &copy);
    if (WholeRows(box, input.shape()) && WorthSharing(input, offset, shape.num_elements())) {
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

// `value` must have the shape that the expression selects.
Status CheckValue(const StridedBox& box, const Tensor& value, string_view name) {
  if (value.shape().dims() == absl::Span<const int64_t>(box.shape)) return OkStatus();
  return InvalidArgument(name, " must have shape ", PartialShape(box.shape).ToString(), ", has ",
                         value.shape().ToString());
}

void Store(const StridedBox& box, const Tensor& value, Tensor& whole, ThreadPool& threads) {
  StridedCopy copy;
  const int64_t offset = Walk(box, whole.shape(), false, &copy);
  CopyStrided(whole.dtype(), copy, value.raw_data(),
              ElementAt(whole.mutable_raw_data(), whole.dtype(), offset), threads);
}

class StridedSliceGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return masks_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    ASSIGN_OR_RETURN(const StridedBox box,
                     ResolveStridedSlice(masks_, ctx.input(1), ctx.input(2), ctx.input(3), shape));
    const Tensor& dy = ctx.input(4);
    RETURN_IF_ERROR(CheckValue(box, dy, "dy"));
    if (box.whole) {
      ctx.SetOutput(0, ctx.TakeInput(4).Reshaped(shape));
      return OkStatus();
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    Zero(*output, ctx.threads());
    Store(box, dy, *output, ctx.threads());
    return OkStatus();
  }

 private:
  StridedSliceMasks masks_;
};

class StridedSliceAssignKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return masks_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& ref = ctx.input(0);
    if (ref.dtype() != DType::kResource || ref.num_elements() != 1) {
      return InvalidArgument("ref must be one variable, is a ", Name(ref.dtype()), " of shape ",
                             ref.shape().ToString());
    }
    ASSIGN_OR_RETURN(const auto variable,
                     ResolveHandleAs<Variable>(ref.scalar<ResourceHandle>(), ctx.resources()));
    const Tensor& value = ctx.input(4);
    if (variable->dtype() != value.dtype()) {
      return InvalidArgument("variable '", variable->name(), "' is ", Name(variable->dtype()),
                             ", value is ", Name(value.dtype()));
    }
    Variable* const target = variable.get();
    RETURN_IF_ERROR(Variable::Update(
        {&target, 1}, {.step_id = ctx.step().step_id}, [&](absl::Span<Tensor* const> tensors) {
          Tensor& whole = *tensors[0];
          ASSIGN_OR_RETURN(
              const StridedBox box,
              ResolveStridedSlice(masks_, ctx.input(1), ctx.input(2), ctx.input(3), whole.shape()));
          RETURN_IF_ERROR(CheckValue(box, value, "value"));
          Store(box, value, whole, ctx.threads());
          return OkStatus();
        }));
    if (ctx.num_outputs() == 1) ctx.SetOutput(0, ctx.TakeInput(0));
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

Attrs Masks(const GradientScope& g) {
  Attrs masks;
  for (const char* mask :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    masks[mask] = g.attr<int64_t>(mask);
  }
  return masks;
}

std::vector<Gradient> StridedSliceGradient(const GradientScope& g) {
  const Output shape = ShapeOf(g.x(), g.x(1).dtype());
  return {Call("StridedSliceGrad", {shape, g.x(1), g.x(2), g.x(3), g.dy()}, Masks(g)), Gradient(),
          Gradient(), Gradient()};
}

std::vector<Gradient> StridedSliceGradGradient(const GradientScope& g) {
  return {Gradient(), Gradient(), Gradient(), Gradient(),
          Call("StridedSlice", {g.dy(), g.x(1), g.x(2), g.x(3)}, Masks(g))};
}

std::vector<AttrDef> MaskAttrs() {
  return {{"begin_mask", 0},
          {"end_mask", 0},
          {"ellipsis_mask", 0},
          {"new_axis_mask", 0},
          {"shrink_axis_mask", 0}};
}

OP(StridedSlice,
   {
       .doc = "What a Python slice expression selects; strides may be negative.",
       .inputs = {{"input", "T"}, {"begin", "Index"}, {"end", "Index"}, {"strides", "Index"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", kAllTypes}, {"Index", kIndex}},
       .attrs = MaskAttrs(),
       .shape = StridedSliceShape,
       .gradient = StridedSliceGradient,
       .examples =
           {{.inputs = {{{{3, 4, 5}}}, {{{3}, {1, 3, 4}}}, {{{3}, {3, 0, 0}}}, {{{3}, {1, -2, 1}}}},
             .attrs = {{"shrink_axis_mask", 4}}},
            {.inputs = {{{{3, 4}}}, {{{3}, {0, 0, 1}}}, {{{3}, {0, 0, 3}}}, {{{3}, {1, 1, 1}}}},
             .attrs = {{"ellipsis_mask", 2}, {"new_axis_mask", 1}}}},
   });
OP(StridedSliceGrad,
   {
       .doc = "Zeros of shape `shape`, with dy where StridedSlice would have read.",
       .inputs = {{"shape", "Index"},
                  {"begin", "Index"},
                  {"end", "Index"},
                  {"strides", "Index"},
                  {"dy", "T"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", kAllTypes}, {"Index", kIndex}},
       .attrs = MaskAttrs(),
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
   });
OP(StridedSliceAssign,
   {
       .doc =
           "Writes `value` where StridedSlice would read in the variable, and yields the variable.",
       .inputs = {{"ref", Ref("T")},
                  {"begin", "Index"},
                  {"end", "Index"},
                  {"strides", "Index"},
                  {"value", "T"}},
       .outputs = {{"output_ref", Ref("T")}},
       .types = {{"T", kAllTypes}, {"Index", kIndex}},
       .attrs = MaskAttrs(),
       .shape = SameShape,
       .examples = {{.inputs = {{{{3, 4}}},
                                {{{2}, {1, 3}}},
                                {{{2}, {3, 0}}},
                                {{{2}, {1, -2}}},
                                {{{2, 2}}}}}},
       .stateful = true,
   });
OP(ResourceStridedSliceAssign,
   {
       .doc = "Writes `value` where StridedSlice would read in the variable.",
       .inputs = {{"ref", "resource"},
                  {"begin", "Index"},
                  {"end", "Index"},
                  {"strides", "Index"},
                  {"value", "T"}},
       .types = {{"T", kAllTypes}, {"Index", kIndex}},
       .attrs = MaskAttrs(),
       .shape = NoOutputs,
       .examples = {{.inputs = {{{{3, 4}}},
                                {{{2}, {1, 3}}},
                                {{{2}, {3, 0}}},
                                {{{2}, {1, -2}}},
                                {{{2, 2}}}}}},
       .stateful = true,
   });

KERNEL_ANY_TYPE(StridedSlice, StridedSliceKernel);
KERNEL_ANY_TYPE(StridedSliceGrad, StridedSliceGradKernel);
KERNEL_ANY_TYPE(StridedSliceAssign, StridedSliceAssignKernel);
KERNEL_ANY_TYPE(ResourceStridedSliceAssign, StridedSliceAssignKernel);

}  // namespace
}  // namespace penstock

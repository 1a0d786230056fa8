// SPDX-License-Identifier: Apache-2.0
//
// TensorStridedSliceUpdate: returns a tensor in which the elements that a Python slice expression
// selects are replaced.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_box.h"

namespace penstock {
namespace {

// Broadcasts `value` to the box's shape. Surplus leading dimensions of size 1 are dropped.
// InvalidArgument if the shapes do not fit.
StatusOr<Tensor> BroadcastToBox(KernelContext& ctx, const StridedBox& box, const Tensor& value) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(box.shape));
  if (value.shape() == shape) return value;
  const Dims from = DenseStrides(value.shape().dims()), to = DenseStrides(shape.dims());
  StridedCopy copy;
  const int surplus = value.rank() - shape.rank();
  for (int d = 0; d < std::max(value.rank(), shape.rank()); ++d) {
    const int at = d - std::max(-surplus, 0), in_box = d - std::max(surplus, 0);
    const int64_t size = at < 0 ? 1 : value.dim(at), wanted = in_box < 0 ? 1 : shape.dim(in_box);
    if (size != 1 && size != wanted) {
      return InvalidArgument("value must broadcast to shape ", shape.ToString(), ", has ",
                             value.shape().ToString());
    }
    if (in_box >= 0) copy.Add(wanted, size == 1 ? 0 : from[at], to[in_box]);
  }
  ASSIGN_OR_RETURN(Tensor spread, ctx.Temporary(value.dtype(), shape));
  CopyStrided(value.dtype(), copy, value.raw_data(), spread.mutable_raw_data(), ctx.threads());
  return spread;
}

class TensorStridedSliceUpdateKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return masks_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Shape shape = input.shape();
    ASSIGN_OR_RETURN(const StridedBox box,
                     ResolveStridedSlice(masks_, ctx.input(1), ctx.input(2), ctx.input(3), shape));
    ASSIGN_OR_RETURN(const Tensor value, BroadcastToBox(ctx, box, ctx.input(4)));
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    if (output->raw_data() != input.raw_data()) {
      CopyElements(input.dtype(), input.raw_data(), output->mutable_raw_data(),
                   input.num_elements());
    }
    StoreInBox(box, value, *output, ctx.threads());
    return OkStatus();
  }

 private:
  StridedSliceMasks masks_;
};

// Sums the value's gradient over the dimensions along which the value was broadcast.
std::vector<Gradient> UpdateGradient(const GradientScope& g) {
  const Attrs masks = StridedSliceMasks::AttrsOf(g.attrs());
  const Output slice = Call("StridedSlice", {g.dy(), g.x(1), g.x(2), g.x(3)}, masks);
  const Output rest =
      Call("TensorStridedSliceUpdate", {g.dy(), g.x(1), g.x(2), g.x(3), ZerosLike(slice)}, masks);
  // A value may have more dimensions than the slice if the surplus ones come first and have size 1.
  const Output shape = Call("BroadcastArgs", {ShapeOf(slice), ShapeOf(g.x(4))});
  return {rest, Gradient(), Gradient(), Gradient(), SumToShapeOf(Reshape(slice, shape), g.x(4))};
}

OP(TensorStridedSliceUpdate) {
  return {
      .doc =
          "Returns `input` with the elements that StridedSlice would read replaced by "
          "`value`, which broadcasts.",
      .inputs = {{"input", "T"},
                 {"begin", "Index"},
                 {"end", "Index"},
                 {"strides", "Index"},
                 {"value", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}, {"Index", kIndex}},
      .attrs = StridedSliceMasks::AttrDefs(),
      .shape = SameShape,
      .gradient = UpdateGradient,
      .examples =
          {{.inputs = {{{{3, 4}}}, {{{2}, {1, 3}}}, {{{2}, {3, 0}}}, {{{2}, {1, -2}}}, {{{2, 2}}}}},
           {.inputs = {{{{3, 4}}}, {{{2}, {1, 3}}}, {{{2}, {3, 0}}}, {{{2}, {1, -2}}}, {{{2}}}}},
           {.inputs =
                {{{{3, 4}}}, {{{2}, {1, 3}}}, {{{2}, {3, 0}}}, {{{2}, {1, -2}}}, {{{1, 2, 1}}}}}},
      .reuses = Reuse::kFirst,
  };
}
KERNEL_ANY_TYPE(TensorStridedSliceUpdate, TensorStridedSliceUpdateKernel);

}  // namespace
}  // namespace penstock

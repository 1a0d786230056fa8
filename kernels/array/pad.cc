// SPDX-License-Identifier: Apache-2.0
//
// Pad (with zeros) and PadV2 (with a value).
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/resource_handle.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/paddings.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// Writes `value` to the padding: for each dimension the two slabs next to the inner box, with the
// inner size in the dimensions before it and the padded size in those after it. So no element is
// written twice.
void FillBorder(const Paddings& pads, const Shape& inner, const void* value, Tensor& output,
                Scheduler& threads) {
  const Dims strides = DenseStrides(output.shape().dims());
  int64_t corner = 0;  // offset of the first inner element, summed over the dimensions before d
  for (int d = 0; d < inner.rank(); ++d) {
    StridedCopy slab;
    for (int i = 0; i < d; ++i) slab.Add(inner.dim(i), 0, strides[i]);
    for (int i = d + 1; i < inner.rank(); ++i) slab.Add(output.dim(i), 0, strides[i]);
    const auto fill = [&](int64_t begin, int64_t count) {
      StridedCopy copy = slab;
      copy.Add(count, 0, strides[d]);
      CopyStrided(output.dtype(), copy, value,
                  ElementAt(output.mutable_raw_data(), output.dtype(), corner + begin * strides[d]),
                  threads);
    };
    fill(0, pads.before(d));
    fill(pads.before(d) + inner.dim(d), pads.after(d));
    corner += pads.before(d) * strides[d];
  }
}

class PadKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Paddings pads, Paddings::Of(ctx.input(1), input.rank()));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(pads.Padded(input.shape().dims())));
    if (ctx.num_inputs() == 3 && ctx.input(2).rank() != 0) {
      return InvalidArgument("constant_values must be a scalar, has shape ",
                             ctx.input(2).shape().ToString());
    }
    if (shape == input.shape()) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return OkStatus();
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const Tensor value = ctx.num_inputs() == 3 ? ctx.input(2) : ZeroOf(input.dtype());
    FillBorder(pads, input.shape(), value.raw_data(), *output, ctx.threads());
    CopyInner(pads, input, *output, ctx.threads());
    return OkStatus();
  }

 private:
  static Tensor ZeroOf(DType dtype) {
    Tensor zero(dtype, Shape());
    ZeroElements(dtype, zero.mutable_raw_data(), 1);
    return zero;
  }
};

std::vector<Gradient> PadGradient(const GradientScope& g) {
  const DType index = g.x(1).dtype();
  const Output column = g.Const(Tensor::Vector<int32_t>({0, 0}));
  const Output height = Pack({RankOf(g.x()), g.Const<int32_t>(1)});
  const Output before = Call("Slice", {g.x(1), column, height});
  const Output begin = Reshape(before, g.Const(Tensor::Vector<int32_t>({-1})));
  std::vector<Gradient> dx(g.num_inputs());
  dx[0] = Call("Slice", {g.dy(), begin, ShapeOf(g.x(), index)});
  // The gradient of the padding value: the sum of dy over the padding. (TensorFlow returns no
  // gradient for it.)
  if (g.num_inputs() == 3) {
    const auto total = [&](Output x) {
      return Sum(x, Range(g.Const<int32_t>(0), RankOf(x), g.Const<int32_t>(1)));
    };
    dx[2] = total(g.dy()) - total(dx[0].values);
  }
  return dx;
}

OP(Pad) {
  return {
      .doc =
          "Pads the input along each dimension i with paddings[i,0] zeros before it and "
          "paddings[i,1] zeros after it.",
      .inputs = {{"input", "T"}, {"paddings", "Tpaddings"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}, {"Tpaddings", kIndex, DType::kInt32}},
      .shape = PaddedShape,
      .gradient = PadGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{2, 2}, {1, 0, 2, 1}}}}}},
  };
}

OP(PadV2) {
  return {
      .doc = "The same as Pad, with constant_values instead of zeros.",
      .inputs = {{"input", "T"}, {"paddings", "Tpaddings"}, {"constant_values", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}, {"Tpaddings", kIndex, DType::kInt32}},
      .shape = PaddedShape,
      .gradient = PadGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{2, 2}, {1, 0, 2, 1}}}, {{.values = {0.5}}}}}},
  };
}

KERNEL_ANY_TYPE(Pad, PadKernel);
KERNEL_ANY_TYPE(PadV2, PadKernel);

}  // namespace
}  // namespace penstock

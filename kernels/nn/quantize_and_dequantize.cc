// SPDX-License-Identifier: Apache-2.0
//
// QuantizeAndDequantize: rounds numbers to those that a few bits can represent, to simulate
// quantized inference in training. The four versions of the op take the same parameters in
// different ways.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/float_view.h"
#include "kernels/nn/per_channel.h"

namespace penstock {
namespace {

// `inverse` is the step between representable numbers, `scale` its inverse; numbers are clamped to
// [min, max] if the range is given.
template <class F>
struct Steps {
  F scale, inverse, min, max;
};

// The rule by which the numbers of a range are quantized.
struct Quantizer {
  bool is_signed = true, range_given = false, narrow = false, half_up = false;

  Status Check(int64_t bits) const {
    if (bits > 0 && bits < (is_signed ? 62 : 63)) return OkStatus();
    return InvalidArgument("num_bits is out of range: ", bits, " with signed_input ", is_signed);
  }

  // Returns the larger of the steps that the two ends of [min, max] need.
  template <class F>
  Steps<F> StepsFor(F min, F max, int64_t bits) const {
    const int64_t lowest = is_signed ? -(int64_t{1} << (bits - 1)) + (narrow ? 1 : 0) : 0;
    const int64_t highest = is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
    const F l = static_cast<F>(lowest), h = static_cast<F>(highest);
    constexpr F kNone = std::numeric_limits<F>::max();
    const F from_min = l * min > 0 ? l / min : kNone;
    const F from_max = h * max > 0 ? h / max : kNone;
    if (from_min < from_max) return {from_min, min / l, min, h * (min / l)};
    return {from_max, max / h, l * (max / h), max};
  }

  template <class F>
  F operator()(F x, const Steps<F>& s) const {
    if (range_given) x = std::max(std::min(x, s.max), s.min);
    const F scaled = x * s.scale;
    return (half_up ? std::floor(scaled + F(0.5)) : std::nearbyint(scaled)) * s.inverse;
  }
};

class QuantizeKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    bits_given_ = node.attrs.count("num_bits") > 0;
    if (bits_given_) RETURN_IF_ERROR(node.Attr("num_bits", &bits_));
    if (node.attrs.count("axis") > 0) RETURN_IF_ERROR(node.Attr("axis", &axis_));
    if (axis_ < -1) return InvalidArgument("Axis must be at least -1. Found ", axis_);
    // The gradient op has only the attributes above.
    if (node.attrs.count("signed_input") == 0) return OkStatus();
    RETURN_IF_ERROR(node.Attr("signed_input", &quantizer_.is_signed));
    RETURN_IF_ERROR(node.Attr("range_given", &quantizer_.range_given));
    if (node.attrs.count("narrow_range") > 0) {
      RETURN_IF_ERROR(node.Attr("narrow_range", &quantizer_.narrow));
    }
    if (node.attrs.count("round_mode") > 0) {
      std::string mode;
      RETURN_IF_ERROR(node.Attr("round_mode", &mode));
      quantizer_.half_up = mode == "HALF_UP";
    }
    return bits_given_ ? quantizer_.Check(bits_) : OkStatus();
  }

  // Returns a view of the tensor along its axis; if there is no axis, a single slice.
  // InvalidArgument if the axis is out of range.
  StatusOr<ChannelSplit> View(const Shape& shape) const {
    if (axis_ == -1) return ChannelSplit{.outer = 1, .channels = 1, .inner = shape.num_elements()};
    if (axis_ < shape.rank()) return SplitAt(shape, static_cast<int>(axis_));
    return InvalidArgument("axis ", axis_, " is out of bounds for an input of shape ",
                           shape.ToString());
  }
  Status CheckRange(const char* what, const Tensor& t, int64_t slices) const {
    const bool fits = axis_ == -1 ? t.rank() == 0 : t.rank() == 1 && t.dim(0) == slices;
    if (fits) return OkStatus();
    return InvalidArgument(what,
                           axis_ == -1 ? " must be a scalar" : " must have one number per slice",
                           ", has shape ", t.shape().ToString());
  }

  Quantizer quantizer_;
  bool bits_given_ = false;  // bits is an attribute; false for V3, which has an input
  int64_t bits_ = 0;
  int64_t axis_ = -1;
};

// Calls fn(first element, slice) for each run of `view.inner` elements.
template <class Fn>
void ForEachRun(const ChannelSplit& view, const Fn& fn) {
  for (int64_t r = 0; r < view.outer * view.channels; ++r) fn(r * view.inner, r % view.channels);
}

template <class T>
class QuantizeAndDequantize final : public QuantizeKernel {
  using F = FloatOf<T>;

  Status Init(const KernelInit& node) override {
    if (node.attrs.count("input_min") > 0) {  // V1
      RETURN_IF_ERROR(node.Attr("input_min", &min_));
      RETURN_IF_ERROR(node.Attr("input_max", &max_));
    }
    return QuantizeKernel::Init(node);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    int64_t bits = bits_;
    if (!bits_given_) {
      const Tensor& given = ctx.input(3);
      if (given.num_elements() != 1) {
        return InvalidArgument("num_bits must be a scalar, has shape ", given.shape().ToString());
      }
      bits = given.scalar<int32_t>();
      RETURN_IF_ERROR(quantizer_.Check(bits));
    }
    ASSIGN_OR_RETURN(const ChannelSplit view, View(input.shape()));
    const FloatInput<F> x(input);
    std::vector<Steps<F>> steps(view.channels);
    RETURN_IF_ERROR(Ranges(ctx, view, x, &steps));
    for (Steps<F>& s : steps) s = quantizer_.StepsFor(s.min, s.max, bits);
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &out));
    FloatOutput<F> y(out);
    ForEachRun(view, [&](int64_t first, int64_t slice) {
      const Steps<F> s = steps[slice];
      ctx.threads().ParallelFor(view.inner, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = first + begin; i < first + end; ++i) y[i] = quantizer_(x[i], s);
      });
    });
    return OkStatus();
  }

  // Sets min and max of each slice: the given ones, or those of the slice's elements.
  // InvalidArgument if a given range is not valid.
  Status Ranges(const KernelContext& ctx, const ChannelSplit& view, const F* x,
                std::vector<Steps<F>>* steps) const {
    if (!quantizer_.range_given) {
      for (Steps<F>& s : *steps) {
        s.min = std::numeric_limits<F>::infinity();
        s.max = -s.min;
      }
      ForEachRun(view, [&](int64_t first, int64_t slice) {
        Steps<F>& s = (*steps)[slice];
        for (int64_t i = first; i < first + view.inner; ++i) {
          s.min = std::min(s.min, x[i]);
          s.max = std::max(s.max, x[i]);
        }
      });
      return OkStatus();
    }
    if (ctx.num_inputs() == 1) {
      (*steps)[0].min = static_cast<F>(min_);
      (*steps)[0].max = static_cast<F>(max_);
    } else {
      RETURN_IF_ERROR(CheckRange("input_min", ctx.input(1), view.channels));
      RETURN_IF_ERROR(CheckRange("input_max", ctx.input(2), view.channels));
      const FloatInput<F> min(ctx.input(1)), max(ctx.input(2));
      for (int64_t i = 0; i < view.channels; ++i) {
        (*steps)[i].min = min[i];
        (*steps)[i].max = max[i];
      }
    }
    for (const Steps<F>& s : *steps) {
      if (s.min > s.max) {
        return InvalidArgument("Invalid range: input_min ", s.min, " > input_max ", s.max);
      }
    }
    return OkStatus();
  }

  float min_ = 0, max_ = 0;
};

// Inputs: gradients, input, input_min, input_max. Passes on the gradients of inputs within the
// range.
template <class T>
class QuantizeGrad final : public QuantizeKernel {
  using F = FloatOf<T>;
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(1);
    if (ctx.input(0).shape() != input.shape()) {
      return InvalidArgument("gradients must have the shape of input, ", input.shape().ToString(),
                             ", have ", ctx.input(0).shape().ToString());
    }
    ASSIGN_OR_RETURN(const ChannelSplit view, View(input.shape()));
    RETURN_IF_ERROR(CheckRange("input_min", ctx.input(2), view.channels));
    RETURN_IF_ERROR(CheckRange("input_max", ctx.input(3), view.channels));
    Tensor* outputs[3];
    for (int i = 0; i < 3; ++i) {
      RETURN_IF_ERROR(ctx.Allocate(i, ctx.input(i + 1).shape(), &outputs[i]));
    }
    // The gradients of input_min and input_max are zero, because the range is not trained.
    for (int i : {1, 2})
      std::fill_n(outputs[i]->template mutable_data<T>(), outputs[i]->num_elements(), T(0));
    const FloatInput<F> dy(ctx.input(0)), x(input), min(ctx.input(2)), max(ctx.input(3));
    FloatOutput<F> dx(outputs[0]);
    ForEachRun(view, [&](int64_t first, int64_t slice) {
      for (int64_t i = first; i < first + view.inner; ++i) {
        dx[i] = x[i] >= min[slice] && x[i] <= max[slice] ? dy[i] : F(0);
      }
    });
    return OkStatus();
  }
};

Status QuantizeGradShape(ShapeScope& s) {
  for (int i = 0; i < 3; ++i) s.set_output(i, s.input(i + 1));
  return OkStatus();
}

// Returns dy as the gradient of input 0, as if the op were the identity ("straight-through
// estimator").
std::vector<Gradient> StraightThrough(const GradientScope& g) {
  std::vector<Gradient> result(g.num_inputs());
  result[0] = g.dy();
  return result;
}

std::vector<AttrDef> QuantizeAttrs(bool num_bits, bool range_given, bool round_mode, bool axis) {
  std::vector<AttrDef> attrs = {{"signed_input", true}, {"range_given", range_given}};
  if (num_bits) attrs.push_back({"num_bits", 8});
  if (round_mode) {
    attrs.push_back({"round_mode", OneOf{{"HALF_TO_EVEN", "HALF_UP"}}, "HALF_TO_EVEN"});
  }
  if (axis) {
    attrs.push_back({"narrow_range", false});
    attrs.push_back({"axis", -1});
  }
  return attrs;
}
std::vector<AttrDef> V1Attrs() {
  std::vector<AttrDef> attrs = QuantizeAttrs(true, false, false, false);
  attrs.push_back({"input_min", 0.0f});
  attrs.push_back({"input_max", 0.0f});
  return attrs;
}

const ExampleTensor kExample = {{2, 3}, {-1, -0.3, 0, 0.2, 0.6, 2}};
const ExampleTensor kMin = {{}, {-1}}, kMax = {{}, {1}};

constexpr char kDoc[] =
    "Rounds numbers to those that num_bits bits can represent within a range. The "
    "range is that of the input, or is given; numbers outside a given range are "
    "clamped to it. With an axis, each slice along it has its own range.";

}  // namespace

OP(QuantizeAndDequantize) {
  return {
      .doc = kDoc,
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = V1Attrs(),
      .shape = SameShape,
      .gradient = StraightThrough,
      .examples = {{.inputs = {{kExample}}, .check_gradient = false}},
  };
}
KERNEL(QuantizeAndDequantize, QuantizeAndDequantize, half, bfloat16, float, double);

OP(QuantizeAndDequantizeV2) {
  return {
      .doc = kDoc,
      .inputs = {{"input", "T"}, {"input_min", "T"}, {"input_max", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = QuantizeAttrs(true, false, true, true),
      .shape = SameShape,
      .gradient = StraightThrough,
      .examples = {{.inputs = {{kExample}, {kMin}, {kMax}}, .check_gradient = false}},
  };
}
KERNEL(QuantizeAndDequantizeV2, QuantizeAndDequantize, half, bfloat16, float, double);

OP(QuantizeAndDequantizeV3) {
  return {
      .doc = kDoc,
      .inputs = {{"input", "T"}, {"input_min", "T"}, {"input_max", "T"}, {"num_bits", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = QuantizeAttrs(false, true, false, true),
      .shape = SameShape,
      .gradient = StraightThrough,
      .examples = {{.inputs = {{kExample}, {kMin}, {kMax}, {{{}, {8}}}}, .check_gradient = false}},
  };
}
KERNEL(QuantizeAndDequantizeV3, QuantizeAndDequantize, half, bfloat16, float, double);

OP(QuantizeAndDequantizeV4) {
  return {
      .doc = kDoc,
      .inputs = {{"input", "T"}, {"input_min", "T"}, {"input_max", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = QuantizeAttrs(true, false, true, true),
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        const Outputs d = CallN("QuantizeAndDequantizeV4Grad", {g.dy(), g.x(0), g.x(1), g.x(2)},
                                {{"axis", g.attr<int64_t>("axis")}});
        return {d[0], d[1], d[2]};
      },
      .examples = {{.inputs = {{kExample}, {kMin}, {kMax}}, .check_gradient = false}},
  };
}
KERNEL(QuantizeAndDequantizeV4, QuantizeAndDequantize, half, bfloat16, float, double);

OP(QuantizeAndDequantizeV4Grad) {
  return {
      .doc =
          "The gradient of QuantizeAndDequantizeV4: it is passed on where the input is "
          "within the range.",
      .inputs = {{"gradients", "T"}, {"input", "T"}, {"input_min", "T"}, {"input_max", "T"}},
      .outputs = {{"input_backprop", "T"},
                  {"input_min_backprop", "T"},
                  {"input_max_backprop", "T"}},
      .types = {{"T", kFloating}},
      .attrs = {{"axis", -1}},
      .shape = QuantizeGradShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        const Outputs d = CallN("QuantizeAndDequantizeV4Grad", {g.dy(0), g.x(1), g.x(2), g.x(3)},
                                {{"axis", g.attr<int64_t>("axis")}});
        return {d[0], Gradient(), Gradient(), Gradient()};
      },
      .examples = {{.inputs = {{{{2, 3}}}, {kExample}, {kMin}, {kMax}}, .check_gradient = false}},
  };
}
KERNEL(QuantizeAndDequantizeV4Grad, QuantizeGrad, half, bfloat16, float, double);

}  // namespace penstock

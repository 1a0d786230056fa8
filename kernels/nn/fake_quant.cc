// SPDX-License-Identifier: Apache-2.0
//
// FakeQuantWithMinMaxArgs, -Vars, -VarsPerChannel, and their gradients: round each number to the
// nearest number that an unsigned integer of num_bits bits can represent between min and max. The
// range is shifted so that zero is represented exactly. B. Jacob et al.: Quantization and Training
// of Neural Networks for Efficient Integer-Arithmetic-Only Inference. CVPR 2018, section 3.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

// The numbers to which inputs are rounded: first, first + scale, ..., last.
struct Grid {
  float first = 0, last = 0, scale = 0;
  bool only_zero;  // the range is [0, 0]

  Grid(float min, float max, float lowest, float highest) : only_zero(min == 0 && max == 0) {
    scale = (max - min) / (highest - lowest);
    const float exact = lowest - min / scale;  // the integer for zero, before rounding
    const float zero = std::round(std::clamp(exact, lowest, highest));
    first = (lowest - zero) * scale;
    last = (highest - zero) * scale;
  }
  bool Covers(float x) const { return x >= first && x <= last; }
  float Round(float x) const {
    const float inverse = 1 / scale, zero = std::floor(-first * inverse + 0.5f);
    // Does not use std::clamp, because it requires min <= max.
    const float clamped = std::max(first, std::min(last, x));
    const float steps = std::floor((clamped - first) * inverse + 0.5f);
    return (steps - zero) * scale;
  }
};

enum class Ranges { kArgs, kVars, kPerChannel };

template <Ranges kRanges>
class FakeQuantKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    int64_t bits = 0;
    bool narrow = false;
    RETURN_IF_ERROR(node.Attr("num_bits", &bits));
    RETURN_IF_ERROR(node.Attr("narrow_range", &narrow));
    if (bits < 2 || bits > 16) {
      return InvalidArgument("num_bits must be between 2 and 16, inclusive; it is ", bits);
    }
    lowest_ = narrow ? 1 : 0;
    highest_ = static_cast<float>((1 << bits) - 1);
    if (kRanges != Ranges::kArgs) return OkStatus();
    RETURN_IF_ERROR(node.Attr("min", &min_));
    RETURN_IF_ERROR(node.Attr("max", &max_));
    if (min_ < max_) return OkStatus();
    return InvalidArgument("min has to be smaller than max, was: ", min_, " >= ", max_);
  }

 protected:
  // Returns the grid of each channel. `first` is the index of the input min, if min is an input.
  // InvalidArgument if min or max has a wrong shape.
  StatusOr<std::vector<Grid>> Grids(const KernelContext& ctx, const Tensor& x, int first) const {
    if constexpr (kRanges == Ranges::kArgs) return std::vector{Grid(min_, max_, lowest_, highest_)};
    const Tensor &min = ctx.input(first), &max = ctx.input(first + 1);
    const bool per_channel = kRanges == Ranges::kPerChannel;
    if (per_channel && x.rank() == 0) return InvalidArgument("inputs must have a last dimension");
    const Shape wanted = per_channel ? Shape({x.dim(x.rank() - 1)}) : Shape();
    if (min.shape() != wanted || max.shape() != wanted) {
      return InvalidArgument("min and max must have shape ", wanted.ToString(), ", have ",
                             min.shape().ToString(), " and ", max.shape().ToString());
    }
    std::vector<Grid> grids;
    for (int64_t c = 0; c < min.num_elements(); ++c) {
      grids.emplace_back(min.data<float>()[c], max.data<float>()[c], lowest_, highest_);
    }
    return grids;
  }

 private:
  float lowest_ = 0, highest_ = 0, min_ = 0, max_ = 0;
};

template <Ranges kRanges>
class FakeQuant final : public FakeQuantKernel<kRanges> {
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const std::vector<Grid> grids, this->Grids(ctx, x, 1));
    Tensor* y;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, x.shape(), &y));
    const float* from = x.data<float>();
    float* to = y->mutable_data<float>();
    ctx.threads().ParallelFor(x.num_elements(), 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Grid& grid = grids[i % grids.size()];
        to[i] = grid.only_zero ? 0 : grid.Round(from[i]);
      }
    });
    return OkStatus();
  }
};

// Values below or above the range pass their gradient to min or max.
template <Ranges kRanges>
class FakeQuantGradient final : public FakeQuantKernel<kRanges> {
  Status Compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(0), &x = ctx.input(1);
    if (!(dy.shape() == x.shape())) {
      return InvalidArgument("gradients and inputs must have one shape, have ",
                             dy.shape().ToString(), " and ", x.shape().ToString());
    }
    ASSIGN_OR_RETURN(const std::vector<Grid> grids, this->Grids(ctx, x, 2));
    Tensor* dx;
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &dx));
    std::vector<double> below(grids.size()), above(grids.size());
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const size_t c = i % grids.size();
      const float value = x.data<float>()[i], d = dy.data<float>()[i];
      const bool inside = grids[c].only_zero || grids[c].Covers(value);
      dx->mutable_data<float>()[i] = inside ? d : 0;
      if (!inside && value < grids[c].first) below[c] += d;
      if (!inside && value > grids[c].last) above[c] += d;
    }
    if constexpr (kRanges == Ranges::kArgs) return OkStatus();
    const Shape& shape = ctx.input(2).shape();
    Tensor *dmin, *dmax;
    RETURN_IF_ERROR(ctx.Allocate(1, shape, &dmin));
    RETURN_IF_ERROR(ctx.Allocate(2, shape, &dmax));
    std::copy(below.begin(), below.end(), dmin->mutable_data<float>());
    std::copy(above.begin(), above.end(), dmax->mutable_data<float>());
    return OkStatus();
  }
};

Status GradientShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.input(0).Merge(s.input(1)));
  s.set_output(0, std::move(shape));
  for (int i = 1; i < s.num_outputs(); ++i) s.set_output(i, s.input(i + 1));
  return OkStatus();
}

std::vector<AttrDef> QuantAttrs(bool args) {
  std::vector<AttrDef> attrs;
  if (args) attrs = {{"min", -6.f}, {"max", 6.f}};
  attrs.push_back({"num_bits", 8});
  attrs.push_back({"narrow_range", false});
  return attrs;
}

OpDef FakeQuantOp(const char* doc, bool args, const char* gradient, const ExampleTensor& min) {
  OpDef op = {.doc = doc,
              .inputs = {{"inputs", "float"}},
              .outputs = {{"outputs", "float"}},
              .attrs = QuantAttrs(args),
              .shape = SameShape,
              .reuses = Reuse::kFirst};
  ExampleTensor max = min;
  for (double& value : max.values) value = -2 * value;
  op.examples = {{.inputs = {{{{2, 3}}}}, .check_gradient = false}};  // a step function
  if (!args) {
    for (const char* name : {"min", "max"}) op.inputs.push_back({name, "float"});
    op.examples[0].inputs.push_back({min});
    op.examples[0].inputs.push_back({max});
  }
  op.gradient = [gradient, args](const GradientScope& g) -> std::vector<Gradient> {
    Attrs attrs = {{"num_bits", g.attr<int64_t>("num_bits")},
                   {"narrow_range", g.attr<bool>("narrow_range")}};
    if (args) {
      attrs["min"] = g.attr<float>("min");
      attrs["max"] = g.attr<float>("max");
      return {Call(gradient, {g.dy(), g.x()}, std::move(attrs))};
    }
    const Outputs d = CallN(gradient, {g.dy(), g.x(0), g.x(1), g.x(2)}, std::move(attrs));
    return {d[0], d[1], d[2]};
  };
  return op;
}

OpDef FakeQuantGradientOp(const char* doc, bool args, const ExampleTensor& min) {
  OpDef op = FakeQuantOp(doc, args, "", min);
  op.inputs.insert(op.inputs.begin(), {"gradients", "float"});
  op.outputs = {{args ? "backprops" : "backprops_wrt_input", "float"}};
  if (!args) {
    op.outputs.push_back({"backprop_wrt_min", "float"});
    op.outputs.push_back({"backprop_wrt_max", "float"});
  }
  op.shape = GradientShape;
  op.gradient = nullptr;
  op.reuses = Reuse::kNone;
  op.examples[0].inputs.insert(op.examples[0].inputs.begin(), {{{2, 3}}});
  return op;
}

const ExampleTensor kNoMin = {}, kScalarMin = {{}, {-0.25}}, kMins = {{3}, {-0.25, -0.5, -1}};

OP(FakeQuantWithMinMaxArgs) {
  return FakeQuantOp("Rounds inputs to the numbers that num_bits bits can represent in [min, max].",
                     true, "FakeQuantWithMinMaxArgsGradient", kNoMin);
}

OP(FakeQuantWithMinMaxVars) {
  return FakeQuantOp("The same as FakeQuantWithMinMaxArgs, with min and max as inputs.", false,
                     "FakeQuantWithMinMaxVarsGradient", kScalarMin);
}

OP(FakeQuantWithMinMaxVarsPerChannel) {
  return FakeQuantOp(
      "The same as FakeQuantWithMinMaxVars, with a min and max for each channel (the "
      "last dimension).",
      false, "FakeQuantWithMinMaxVarsPerChannelGradient", kMins);
}

OP(FakeQuantWithMinMaxArgsGradient) {
  return FakeQuantGradientOp("The gradient of FakeQuantWithMinMaxArgs.", true, kNoMin);
}

OP(FakeQuantWithMinMaxVarsGradient) {
  return FakeQuantGradientOp("The gradients of FakeQuantWithMinMaxVars.", false, kScalarMin);
}

OP(FakeQuantWithMinMaxVarsPerChannelGradient) {
  return FakeQuantGradientOp("The gradients of FakeQuantWithMinMaxVarsPerChannel.", false, kMins);
}

KERNEL_ANY_TYPE(FakeQuantWithMinMaxArgs, FakeQuant<Ranges::kArgs>);
KERNEL_ANY_TYPE(FakeQuantWithMinMaxVars, FakeQuant<Ranges::kVars>);
KERNEL_ANY_TYPE(FakeQuantWithMinMaxVarsPerChannel, FakeQuant<Ranges::kPerChannel>);
KERNEL_ANY_TYPE(FakeQuantWithMinMaxArgsGradient, FakeQuantGradient<Ranges::kArgs>);
KERNEL_ANY_TYPE(FakeQuantWithMinMaxVarsGradient, FakeQuantGradient<Ranges::kVars>);
KERNEL_ANY_TYPE(FakeQuantWithMinMaxVarsPerChannelGradient, FakeQuantGradient<Ranges::kPerChannel>);

}  // namespace
}  // namespace penstock

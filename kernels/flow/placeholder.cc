// SPDX-License-Identifier: Apache-2.0
//
// Placeholder, PlaceholderV2: values that every step must feed; PlaceholderWithDefault: a value
// that a step may feed.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

// Runs only if the value was not fed, and returns an error.
class PlaceholderKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("dtype", &dtype_));
    return node.Attr("shape", &shape_);
  }
  Status Compute(KernelContext& ctx) override {
    const std::string shape =
        shape_.known_rank() && shape_.rank() > 0 ? StrCat(" and shape ", shape_.ToString()) : "";
    return InvalidArgument("You must feed a value for placeholder tensor '", ctx.node_name(),
                           "' with dtype ", Name(dtype_), shape);
  }

 private:
  DType dtype_ = DType::kInvalid;
  PartialShape shape_;
};

// Sets the output's shape to the attribute. An empty shape counts as unknown, because early clients
// wrote [] for an unknown shape.
Status PlaceholderShape(ShapeScope& s) {
  const PartialShape& shape = s.attr<PartialShape>("shape");
  s.set_output(0, shape.rank() == 0 ? PartialShape() : shape);
  return OkStatus();
}

// Passes its input on; the attribute `shape` restricts the values that may be fed instead.
class PlaceholderWithDefaultKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("shape", &shape_); }
  Status Compute(KernelContext& ctx) override {
    if (!shape_.Compatible(ctx.input(0).shape())) {
      return InvalidArgument("the default has shape ", ctx.input(0).shape().ToString(),
                             ", the attribute says ", shape_.ToString());
    }
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }

 private:
  PartialShape shape_;
};

Status PlaceholderWithDefaultShape(ShapeScope& s) {
  const PartialShape& shape = s.attr<PartialShape>("shape");
  if (!shape.Compatible(s.input(0))) {
    return InvalidArgument("the default has shape ", s.input(0).ToString(), ", the attribute says ",
                           shape.ToString());
  }
  s.set_output(0, shape);
  return OkStatus();
}

OP(Placeholder) {
  return {
      .doc = "A value that must be fed in each step.",
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"shape", PartialShape()}},
      .shape = PlaceholderShape,
      .gradient = NoGradient,
      .is_placeholder = true,
      .untestable_alone = "exists to be fed",
  };
}

OP(PlaceholderV2) {
  return {
      .doc = "A value of shape `shape` that must be fed in each step.",
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"shape", Shapes{}}},
      .shape = ShapeFromAttr,
      .gradient = NoGradient,
      .is_placeholder = true,
      .untestable_alone = "exists to be fed",
  };
}

OP(PlaceholderWithDefault) {
  return {
      .doc = "Returns the input, unless another value is fed in its place.",
      .inputs = {{"input", "dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"shape", Shapes{}}},
      .shape = PlaceholderWithDefaultShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> { return {g.raw_dy()}; },
      .examples = {{.inputs = {{{{2, 3}}}}, .attrs = {{"shape", PartialShape({2, -1})}}}},
      .is_placeholder = true,
      .is_view = true,
  };
}

KERNEL_ANY_TYPE(Placeholder, PlaceholderKernel);
KERNEL_ANY_TYPE(PlaceholderV2, PlaceholderKernel);
KERNEL_ANY_TYPE(PlaceholderWithDefault, PlaceholderWithDefaultKernel);

// The GPU uses the same kernels, because they access no element.
KERNEL_DEF({.op = "Placeholder", .device = "GPU", .make = Make<PlaceholderKernel>});
KERNEL_DEF({.op = "PlaceholderV2", .device = "GPU", .make = Make<PlaceholderKernel>});
KERNEL_DEF({.op = "PlaceholderWithDefault",
            .device = "GPU",
            .make = Make<PlaceholderWithDefaultKernel>});

}  // namespace
}  // namespace penstock

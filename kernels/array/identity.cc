// SPDX-License-Identifier: Apache-2.0
//
// Ops whose outputs share the buffers of their inputs: Identity; ops whose kernels do the same as
// Identity's, but which the compiler or the gradients treat differently; and EnsureShape, which
// checks the shape first.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class ForwardKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    for (int i = 0; i < ctx.num_inputs(); ++i) ctx.SetOutput(i, ctx.TakeInput(i));
    return OkStatus();
  }
  int64_t CostNanos() const override { return 20; }
};

Status SameShapePerInput(ShapeScope& s) {
  for (int i = 0; i < s.num_inputs(); ++i) {
    s.set_output(i, s.input(i));
    if (const auto* element = s.element(i)) s.set_output_element(i, *element);
  }
  return OkStatus();
}

class EnsureShapeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("shape", &shape_); }
  Status Compute(KernelContext& ctx) override {
    if (!shape_.Compatible(ctx.input(0).shape())) {
      return InvalidArgument("Shape of tensor ", ctx.node_name(), " ",
                             ctx.input(0).shape().ToString(),
                             " is not compatible with expected shape ", shape_.ToString(), ".");
    }
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }

 private:
  PartialShape shape_;
};

Status EnsuredShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.input(0).Merge(s.attr<PartialShape>("shape")));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

std::vector<Gradient> PassThroughGradient(const GradientScope& g) {
  std::vector<Gradient> dx;
  for (int i = 0; i < g.num_inputs(); ++i) dx.push_back(g.raw_dy(i));
  return dx;
}

std::vector<Gradient> RefuseGradient(const GradientScope& g) {
  g.sink().Fail(InvalidArgument("node '", g.node_name(), "': a gradient was asked for through ",
                                "PreventGradient: ", g.attr<std::string>("message")));
  return {Gradient()};
}

OP(Identity) {
  return {
      .doc = "Returns the input.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .shape = SameShapePerInput,
      .gradient = PassThroughGradient,
      .passes_through = true,
      .ref_form = "RefIdentity",
  };
}

OP(IdentityN) {
  return {
      .doc =
          "Returns its inputs. The outputs become available together, when all inputs are "
          "available.",
      .inputs = {{"input", List("T")}},
      .outputs = {{"output", List("T")}},
      .attrs = {{"T", TypeList{.min_length = 1, .allowed = kAnyType}}},
      .shape = SameShapePerInput,
      .gradient = PassThroughGradient,
      .is_view = true,
  };
}

OP(RefIdentity) {
  return {
      .doc = "Returns the same reference to a variable as the input.",
      .inputs = {{"input", Ref("T")}},
      .outputs = {{"output", Ref("T")}},
      .types = {{"T", kAnyType}},
      .shape = SameShapePerInput,
      .gradient = PassThroughGradient,
      .allows_uninitialized_input = true,
      .passes_through = true,
      .only_reads = true,
  };
}

OP(Snapshot) {
  return {
      .doc = "Returns the current value of the input.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .shape = SameShapePerInput,
      .gradient = PassThroughGradient,
      .is_view = true,
  };
}

OP(StopGradient) {
  return {
      .doc = "Returns the input. Gradients do not flow through it.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .shape = SameShapePerInput,
      .gradient = NoGradient,
      .passes_through = true,
      .ref_form = "RefIdentity",
  };
}

OP(PreventGradient) {
  return {
      .doc =
          "Returns the input. Building a gradient through it is an error that shows "
          "`message`.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"message", ""}},
      .shape = SameShapePerInput,
      .gradient = RefuseGradient,
      .examples = {{.inputs = {{{{2, 3}}}}, .check_gradient = false}},
      .passes_through = true,
      .ref_form = "RefIdentity",
  };
}

OP(GuaranteeConst) {
  return {
      .doc =
          "Returns the input. The author of the graph guarantees that its value never "
          "changes.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .shape = SameShapePerInput,
      .gradient = NoGradient,
      .is_view = true,
  };
}

OP(EnsureShape) {
  return {
      .doc =
          "Returns the input. InvalidArgument if the shape of the input is not compatible with "
          "`shape`.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"shape", Shapes{}}},
      .shape = EnsuredShape,
      .gradient = PassThroughGradient,
      .examples = {{.inputs = {{{{2, 3}}}}, .attrs = {{"shape", PartialShape({2, -1})}}}},
      .is_view = true,
  };
}

KERNEL_ANY_TYPE(Identity, ForwardKernel);
KERNEL_ANY_TYPE(GuaranteeConst, ForwardKernel);
KERNEL_ANY_TYPE(EnsureShape, EnsureShapeKernel);
KERNEL_ANY_TYPE(IdentityN, ForwardKernel);
KERNEL_ANY_TYPE(RefIdentity, ForwardKernel);
KERNEL_ANY_TYPE(Snapshot, ForwardKernel);
KERNEL_ANY_TYPE(StopGradient, ForwardKernel);
KERNEL_ANY_TYPE(PreventGradient, ForwardKernel);

// The GPU uses the same kernels, because they access no element.
KERNEL_DEF({.op = "Identity", .device = "GPU", .make = Make<ForwardKernel>});
KERNEL_DEF({.op = "GuaranteeConst", .device = "GPU", .make = Make<ForwardKernel>});
KERNEL_DEF({.op = "EnsureShape", .device = "GPU", .make = Make<EnsureShapeKernel>});
KERNEL_DEF({.op = "IdentityN", .device = "GPU", .make = Make<ForwardKernel>});
KERNEL_DEF({.op = "RefIdentity",
            .device = "GPU",
            .host_args = {"input", "output"},
            .make = Make<ForwardKernel>});
KERNEL_DEF({.op = "Snapshot", .device = "GPU", .make = Make<ForwardKernel>});
KERNEL_DEF({.op = "StopGradient", .device = "GPU", .make = Make<ForwardKernel>});
KERNEL_DEF({.op = "PreventGradient", .device = "GPU", .make = Make<ForwardKernel>});

}  // namespace
}  // namespace penstock

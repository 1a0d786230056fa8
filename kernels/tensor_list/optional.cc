// SPDX-License-Identifier: Apache-2.0
//
// OptionalFromValue, OptionalNone, OptionalHasValue, OptionalGetValue: optionals, values that hold
// some tensors or nothing. A branch of a conditional passes optionals to its gradient.
#include "kernels/tensor_list/optional.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

const bool optional_registered =
    RegisterVariantDecoder(OptionalValue::kTypeName, OptionalValue::Decode);

StatusOr<const OptionalValue*> OptionalInput(const KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const auto* optional =
      input.rank() == 0 ? dynamic_cast<const OptionalValue*>(input.scalar<Variant>().value.get())
                        : nullptr;
  if (optional != nullptr) return optional;
  return InvalidArgument("Input is not an Optional: ", input.ToString());
}

class OptionalFromValueKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    std::vector<Tensor> values;
    for (int i = 0; i < ctx.num_inputs(); ++i) values.push_back(ctx.TakeInput(i));
    ASSIGN_OR_RETURN(Variant made, OptionalValue::Of(std::move(values)));
    ctx.SetOutput(0, Tensor::Scalar(std::move(made)));
    return OkStatus();
  }
};

class OptionalNoneKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar(OptionalValue::None()));
    return OkStatus();
  }
};

class OptionalHasValueKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const OptionalValue* optional, OptionalInput(ctx));
    ctx.SetOutput(0, Tensor::Scalar(optional->values().has_value()));
    return OkStatus();
  }
};

class OptionalGetValueKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("output_shapes", &shapes_));
    if (shapes_.size() == node.output_types.size()) return OkStatus();
    return InvalidArgument("node '", node.name, "': output_shapes has ", shapes_.size(),
                           " elements, output_types ", node.output_types.size());
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const OptionalValue* optional, OptionalInput(ctx));
    if (!optional->values()) {
      return InvalidArgument("The given optional does not have a value.");
    }
    const std::vector<Tensor>& values = *optional->values();
    if (values.size() != shapes_.size()) {
      return InvalidArgument("The given optional has ", values.size(), " components, expected ",
                             shapes_.size(), ".");
    }
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const DType wanted = ctx.output_type(i).dtype;
      if (values[i].dtype() != wanted || !shapes_[i].Compatible(values[i].shape())) {
        return InvalidArgument("The given optional does not match the expected type and shape for ",
                               "component ", i, ". Expected: ", Name(wanted), shapes_[i].ToString(),
                               ". Actual: ", Name(values[i].dtype()), values[i].shape().ToString(),
                               ".");
      }
      ctx.SetOutput(i, values[i]);
    }
    return OkStatus();
  }

 private:
  std::vector<PartialShape> shapes_;
};

Status HasValueShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  return ScalarShape(s);
}

Status GetValueShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  const auto& shapes = s.attr<std::vector<PartialShape>>("output_shapes");
  const int count = std::min(s.num_outputs(), static_cast<int>(shapes.size()));
  for (int i = 0; i < count; ++i) s.set_output(i, shapes[i]);
  return OkStatus();
}

std::vector<Gradient> FromValueGradient(const GradientScope& g) {
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
  for (int i = 0; i < g.num_inputs(); ++i) {
    types.push_back(g.x(i).dtype());
    shapes.push_back(g.x(i).shape());
  }
  const Outputs values =
      CallN("OptionalGetValue", {g.dy()}, {{"output_types", types}, {"output_shapes", shapes}});
  return {values.begin(), values.begin() + g.num_inputs()};
}

std::vector<Gradient> GetValueGradient(const GradientScope& g) {
  Outputs dy;
  for (int i = 0; i < g.num_outputs(); ++i) dy.push_back(g.dy(i));
  return {Call("OptionalFromValue", {NodeInput(dy)})};
}

OP(OptionalFromValue) {
  return {
      .doc = "Makes an optional that has the given tensors.",
      .inputs = {{"components", List("Toutput_types")}},
      .outputs = {{"optional", "variant"}},
      .attrs = {{"Toutput_types", TypeList{.min_length = 1, .allowed = kAnyType}}},
      .shape = ScalarShape,
      .gradient = FromValueGradient,
  };
}

OP(OptionalNone) {
  return {
      .doc = "Makes an optional without a value.",
      .outputs = {{"optional", "variant"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
  };
}

OP(OptionalHasValue) {
  return {
      .doc = "Returns whether an optional has a value.",
      .inputs = {{"optional", "variant"}},
      .outputs = {{"has_value", "bool"}},
      .shape = HasValueShape,
      .gradient = NoGradient,
      .untestable_alone = "reads what another op made: kernels/tensor_list has its tests",
  };
}

OP(OptionalGetValue) {
  return {
      .doc = "Returns the tensors of an optional; InvalidArgument if it has no value.",
      .inputs = {{"optional", "variant"}},
      .outputs = {{"components", List("output_types")}},
      .attrs = {{"output_types", TypeList{.min_length = 1, .allowed = kAnyType}},
                {"output_shapes", ShapeList{}}},
      .shape = GetValueShape,
      .gradient = GetValueGradient,
      .examples = {{.inputs = {{{{2, 3}}}},
                    .attrs = {{"output_types", std::vector<DType>{DType::kFloat}},
                              {"output_shapes", std::vector<PartialShape>{{}}}}}},
      .untestable_alone = "reads what another op made: kernels/tensor_list has its tests",
  };
}

KERNEL_ANY_TYPE(OptionalFromValue, OptionalFromValueKernel);
KERNEL_ANY_TYPE(OptionalNone, OptionalNoneKernel);
KERNEL_ANY_TYPE(OptionalHasValue, OptionalHasValueKernel);
KERNEL_ANY_TYPE(OptionalGetValue, OptionalGetValueKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// TemporaryVariable, DestroyTemporaryVariable: variables that exist only within one step.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/elements.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

class TemporaryVariableKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("dtype", &dtype_));
    RETURN_IF_ERROR(node.Attr("var_name", &name_));
    if (name_.empty()) name_ = node.name;
    PartialShape shape;
    RETURN_IF_ERROR(node.Attr("shape", &shape));
    if (!shape.fully_known()) {
      return InvalidArgument("a temporary variable needs a known shape, has ", shape.ToString());
    }
    shape_ = shape.ToShape();
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(Tensor value, ctx.Temporary(dtype_, shape_));
    Zero(value, ctx.threads());
    bool made = false;
    const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
      made = true;
      return std::make_shared<Variable>(name_, dtype_, shape_);
    };
    ASSIGN_OR_RETURN(
        std::shared_ptr<Resource> resource,
        ctx.step().step_resources->LookupOrCreate("", name_, "Variable", make, ctx.origin()));
    if (!made) return AlreadyExists("temporary variable '", name_, "' exists in this step");
    RETURN_IF_ERROR(static_cast<Variable&>(*resource).Assign(std::move(value), true, ctx.origin()));
    ctx.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = ctx.device_name(),
                                                   .container = kDefaultContainer,
                                                   .name = name_,
                                                   .type = "Variable",
                                                   .elements = {{dtype_, shape_}},
                                                   .resource = std::move(resource)}));
    return OkStatus();
  }

 private:
  DType dtype_ = DType::kInvalid;
  Shape shape_;
  std::string name_;
};

class DestroyTemporaryVariableKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("var_name", &name_); }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0, ctx.output_type(0).dtype));
    ASSIGN_OR_RETURN(Tensor value, variable->Read());
    RETURN_IF_ERROR(ctx.step().step_resources->Remove("", name_, ctx.origin()));
    ctx.SetOutput(0, std::move(value));
    return OkStatus();
  }

 private:
  std::string name_;
};

OP(TemporaryVariable) {
  return {
      .doc =
          "Makes a variable of zeros, which exists until DestroyTemporaryVariable or the "
          "end of the step.",
      .outputs = {{"ref", Ref("dtype")}},
      .types = {{"dtype", kAllTypes}},
      .attrs = {{"shape", Shapes{}}, {"var_name", ""}},
      .shape = ShapeFromAttr,
      .gradient = NoGradient,
      .examples = {{.attrs = {{"shape", Shape({2, 3})}}}},
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(TemporaryVariable, TemporaryVariableKernel);

OP(DestroyTemporaryVariable) {
  return {
      .doc = "Returns the value of a temporary variable, and deletes the variable.",
      .inputs = {{"ref", Ref("T")}},
      .outputs = {{"value", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"var_name", Strings{}}},
      .shape = SameShape,
      .gradient = NoGradient,
      .untestable_alone = "ends what another op of the same step made",
  };
}
KERNEL_ANY_TYPE(DestroyTemporaryVariable, DestroyTemporaryVariableKernel);

}  // namespace
}  // namespace penstock

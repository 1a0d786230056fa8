// SPDX-License-Identifier: Apache-2.0
//
// The ops that create variables, tell whether they have a value, and destroy them.

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/op/awaited_variables.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

// Returns text that tells the user how to drop a value that an earlier program has left behind.
std::string HowToReset(const std::string& container) {
  return StrCat("If a program that has ended left it there, drop it: penstock reset ",
                container == kDefaultContainer ? "" : StrCat("--container=", container, " "),
                "grpc://HOST:PORT, with the address of a task");
}

// Finds or creates the variable and outputs its handle, in either form.
class VariableKernel : public Kernel {
 public:
  ~VariableKernel() override { Withdraw(); }
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("dtype", &dtype_));
    RETURN_IF_ERROR(node.Attr("shape", &shape_));
    RETURN_IF_ERROR(node.Attr("container", &container_));
    RETURN_IF_ERROR(node.Attr("shared_name", &name_));
    if (container_.empty()) container_ = kDefaultContainer;
    node_ = node.name;
    if (name_.empty()) name_ = node_;
    // Programs older than VariableV2 write "[]" for an unknown shape.
    if (node.op.name == "Variable" && shape_.rank() == 0) shape_ = PartialShape();
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    MutexLock lock(mu_);
    if (variable_ == nullptr || variable_->removed() || store_ != &ctx.resources()) {
      RETURN_IF_ERROR(MakeHandle(ctx));
    }
    ctx.SetOutput(0, handle_);
    return OkStatus();
  }

 private:
  Status MakeHandle(const KernelContext& ctx) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto make = [this]() -> StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<Variable>(name_, dtype_, shape_);
    };
    ASSIGN_OR_RETURN(
        std::shared_ptr<Resource> resource,
        ctx.resources().LookupOrCreate(container_, name_, "Variable", make, ctx.origin()));
    auto& variable = static_cast<Variable&>(*resource);
    if (variable.dtype() != dtype_) {  // another graph made the variable
      return InvalidArgument("variable '", name_, "' exists already, as ", Name(variable.dtype()),
                             variable.shape().ToString(), " where this node says ", Name(dtype_),
                             shape_.ToString(), ". ", HowToReset(container_));
    }
    Withdraw();
    RETURN_IF_ERROR(variable.Declare(node_, shape_));
    handle_ = Tensor::Scalar(ResourceHandle{.device = ctx.device_name(),
                                            .container = container_,
                                            .name = name_,
                                            .type = "Variable",
                                            .elements = {{dtype_, shape_}},
                                            .resource = std::move(resource)});
    store_ = &ctx.resources();
    variable_ = &variable;
    return OkStatus();
  }

  void Withdraw() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (variable_ != nullptr) variable_->Withdraw(node_, shape_);
    variable_ = nullptr;
    handle_ = Tensor();
  }

  DType dtype_ = DType::kInvalid;
  PartialShape shape_;
  std::string node_, container_, name_;

  Mutex mu_;  // locked before the mutex of the store
  // The handle of the last step, which the next step returns again, because looking up the variable
  // by name and making a handle costs more than most ops.
  Tensor handle_ ABSL_GUARDED_BY(mu_);
  const ResourceStore* store_ ABSL_GUARDED_BY(mu_) = nullptr;
  Variable* variable_ ABSL_GUARDED_BY(mu_) = nullptr;  // the variable of handle_
};

// If the value of a resource variable does not fit the shape that the graph declares, the value
// comes from a program that has ended, and the variable counts as not initialised. This does not
// apply to a ref variable, whose shape an Assign of this program with validate_shape=false may have
// changed.
template <VariableForm kForm>
class IsInitializedKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const auto variable = VariableInput(ctx, 0);
    if (!variable.ok() && variable.status().code() != StatusCode::kNotFound) {
      return variable.status();
    }
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    bool initialized = variable.ok() && (*variable)->initialized();
    if (initialized && kForm == VariableForm::kResource)
      initialized = IsOfThisProgram(ctx, **variable);
    *output->mutable_data<bool>() = initialized;
    if (!initialized) {
      const auto& handle = ctx.input(0).scalar<ResourceHandle>();
      NoteAwaitedVariable(ctx.device_name(), handle.container, handle.name, *ctx.step().env);
    }
    return OkStatus();
  }

 private:
  // Returns whether the value fits the shape that the handle declares, and logs if it does not.
  static bool IsOfThisProgram(const KernelContext& ctx, const Variable& variable) {
    const auto& handle = ctx.input(0).scalar<ResourceHandle>();
    if (handle.elements.empty()) return true;
    const PartialShape& declared = handle.elements[0].shape;
    Shape shape;
    const Status read = variable.Inspect([&](const Tensor& value) {
      shape = value.shape();
      return OkStatus();
    });
    if (!read.ok() || declared.Compatible(shape)) return read.ok();
    Log({.level = LogLevel::kWarning,
         .event = "variable_of_another_program",
         .text = StrCat("variable '", variable.name(), "' holds a value ", Name(variable.dtype()),
                        shape.ToString(), ", where this program declares ", Name(variable.dtype()),
                        declared.ToString(), ": it counts as not initialised. ",
                        HowToReset(handle.container)),
         .fields = {{"variable", variable.name()}},
         .limited = true});
    return false;
  }
};

class DestroyResourceKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("ignore_lookup_error", &ignore_lookup_error_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.dtype() != DType::kResource || input.num_elements() != 1) {
      return InvalidArgument("input 0 must be one resource handle, is ", Name(input.dtype()),
                             input.shape().ToString());
    }
    const ResourceHandle& handle = input.scalar<ResourceHandle>();
    const Status removed = ctx.resources().Remove(handle.container, handle.name, ctx.origin());
    if (ignore_lookup_error_ && removed.code() == StatusCode::kNotFound) return OkStatus();
    return removed;
  }

 private:
  bool ignore_lookup_error_ = true;
};

Status LegacyVariableShape(ShapeScope& s) {
  const PartialShape& shape = s.attr<PartialShape>("shape");
  s.set_output(0, shape.rank() == 0 ? PartialShape() : shape);
  return OkStatus();
}

Status HandleShape(ShapeScope& s) {
  s.set_output(0, PartialShape::Scalar());
  s.set_output_element(0, {s.attr<EdgeType>("dtype").dtype, s.attr<PartialShape>("shape")});
  return OkStatus();
}

OP(Variable) {
  return {
      .doc = "Makes a variable and returns a reference to it. The shape [] means unknown.",
      .outputs = {{"ref", Ref("dtype")}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"shape", Shapes{}}, {"container", ""}, {"shared_name", ""}},
      .shape = LegacyVariableShape,
      .gradient = NoGradient,
      .examples = {{.attrs = {{"shape", Shape({2, 3})}}}},
      .stateful = true,
      .holds_parameters = true,
  };
}
KERNEL_ANY_TYPE(Variable, VariableKernel);

OP(VariableV2) {
  return {
      .doc = "Makes a variable and returns a reference to it.",
      .outputs = {{"ref", Ref("dtype")}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"shape", Shapes{}}, {"container", ""}, {"shared_name", ""}},
      .shape = ShapeFromAttr,
      .gradient = NoGradient,
      .examples = {{.attrs = {{"shape", Shape({2, 3})}}}},
      .stateful = true,
      .holds_parameters = true,
  };
}
KERNEL_ANY_TYPE(VariableV2, VariableKernel);

OP(VarHandleOp) {
  return {
      .doc = "Makes a variable and returns its handle.",
      .outputs = {{"resource", "resource"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"shape", Shapes{}},
                {"container", ""},
                {"shared_name", ""},
                {"allowed_devices", StringList{}, std::vector<std::string>{}},
                {"debug_name", ""}},
      .shape = HandleShape,
      .gradient = NoGradient,
      .examples = {{.attrs = {{"shape", Shape({2, 3})}}}},
      .stateful = true,
      .holds_parameters = true,
  };
}
KERNEL_ANY_TYPE(VarHandleOp, VariableKernel);

OP(IsVariableInitialized) {
  return {
      .doc = "Returns whether a variable has been assigned.",
      .inputs = {{"ref", Ref("dtype")}},
      .outputs = {{"is_initialized", "bool"}},
      .types = {{"dtype", kAnyType}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .allows_uninitialized_input = true,
      .only_reads = true,
  };
}
KERNEL_ANY_TYPE(IsVariableInitialized, IsInitializedKernel<VariableForm::kRef>);

OP(VarIsInitializedOp) {
  return {
      .doc =
          "Returns whether a variable exists and has a value of the shape that the graph "
          "declares.",
      .inputs = {{"resource", "resource"}},
      .outputs = {{"is_initialized", "bool"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = true,
      .only_reads = true,
  };
}
KERNEL_ANY_TYPE(VarIsInitializedOp, IsInitializedKernel<VariableForm::kResource>);

OP(DestroyResourceOp) {
  return {
      .doc = "Deletes a resource by its handle.",
      .inputs = {{"resource", "resource"}},
      .attrs = {{"ignore_lookup_error", true}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(DestroyResourceOp, DestroyResourceKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Ops on whole tensor arrays: create an array, create its gradient, return its size, close it.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/tensor_array/array_kernel.h"

namespace penstock {
namespace {

constexpr float kFlow = 0;

// Outputs the handle of an array and, if the op has that output, its flow.
Status SetArray(KernelContext& ctx, const std::shared_ptr<Resource>& resource,
                const PartialShape& element_shape) {
  const auto& array = static_cast<const TensorArray&>(*resource);
  ASSIGN_OR_RETURN(Tensor handle, MakeHandle(ctx, ctx.output_type(0), kTensorArrays, array.name(),
                                             resource, {array.dtype(), element_shape}));
  ctx.SetOutput(0, std::move(handle));
  if (ctx.num_outputs() > 1) ctx.SetOutput(1, Tensor::Scalar(kFlow));
  return OkStatus();
}

class TensorArrayKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("dtype", &options_.dtype));
    RETURN_IF_ERROR(node.Attr("element_shape", &options_.element_shape));
    RETURN_IF_ERROR(node.Attr("dynamic_size", &options_.dynamic_size));
    RETURN_IF_ERROR(node.Attr("clear_after_read", &options_.clear_after_read));
    if (node.attrs.contains("identical_element_shapes")) {
      RETURN_IF_ERROR(node.Attr("identical_element_shapes", &options_.identical_element_shapes));
    }
    RETURN_IF_ERROR(node.Attr("tensor_array_name", &name_));
    if (name_.empty()) name_ = node.name;
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t size, IntScalar(ctx.input(0), "size"));
    if (size < 0) return InvalidArgument("Size should be >= 0, is ", size);
    const std::string name = UniqueStepName(name_);
    const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
      return TensorArray::Make(name, size, options_);
    };
    ASSIGN_OR_RETURN(const auto array, ctx.step().step_resources->LookupOrCreate(
                                           kTensorArrays, name, "TensorArray", make, ctx.origin()));
    return SetArray(ctx, array, options_.element_shape);
  }

 private:
  TensorArray::Options options_;
  std::string name_;
};

class TensorArrayGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("source", &source_); }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto array, StepResourceInputAs<TensorArray>(ctx, 0));
    Shape prefix;
    if (ctx.num_inputs() > 2) {
      ASSIGN_OR_RETURN(prefix, ShapeVector(ctx.input(2), "shape_to_prepend"));
    }
    const std::string name = StrCat(array->name(), "@", source_);
    const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
      return array->MakeGradient(name, prefix, ctx.origin());
    };
    ASSIGN_OR_RETURN(const auto gradient,
                     ctx.step().step_resources->LookupOrCreate(kTensorArrays, name, "TensorArray",
                                                               make, ctx.origin()));
    return SetArray(ctx, gradient, static_cast<const TensorArray&>(*gradient).element_shape());
  }

 private:
  std::string source_;
};

class TensorArraySizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto array, StepResourceInputAs<TensorArray>(ctx, 0));
    ASSIGN_OR_RETURN(const int64_t size, array->Size());
    ctx.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(size)));
    return OkStatus();
  }
};

class TensorArrayCloseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto array, StepResourceInputAs<TensorArray>(ctx, 0));
    array->Close(ctx.origin());
    return OkStatus();
  }
};

std::vector<ArgDef> HandleAndFlow(OpGeneration generation, const char* handle) {
  std::vector<ArgDef> args = {HandleArg(generation, handle)};
  if (generation == OpGeneration::kResource) {
    args.push_back({handle == string_view("handle") ? "flow" : "flow_out", "float"});
  }
  return args;
}

// Sets the shape of the handle; if it is a resource, also its element and the shape of the flow.
void SetHandleShape(ShapeScope& s, OpGeneration generation,
                    const ResourceHandle::Element& element) {
  s.set_output(0, HandleShape(generation));
  if (generation != OpGeneration::kResource) return;
  s.set_output_element(0, element);
  s.set_output(1, PartialShape::Scalar());
}

OpDef TensorArrayOp(OpGeneration generation) {
  OpDef op = {.doc =
                  "Makes an array of `size` tensors of type dtype for this step. Each element may "
                  "be written once.",
              .inputs = {{"size", "int32"}},
              .outputs = HandleAndFlow(generation, "handle"),
              .types = {{"dtype", kAnyType}},
              .attrs = {{"element_shape", PartialShape()},
                        {"dynamic_size", false},
                        {"clear_after_read", true},
                        {"tensor_array_name", ""}},
              .shape = [generation](ShapeScope& s) -> Status {
                RETURN_IF_ERROR(s.WithRank(0, 0).status());
                SetHandleShape(
                    s, generation,
                    {s.attr<EdgeType>("dtype").dtype, s.attr<PartialShape>("element_shape")});
                return OkStatus();
              },
              .gradient = NoGradient,
              .examples = {{.inputs = {{{.shape = {}, .values = {2}}}}}},
              .stateful = true};
  if (generation == OpGeneration::kResource) {
    op.attrs.push_back({"identical_element_shapes", false});
  }
  return op;
}

OpDef TensorArrayGradOp(OpGeneration generation) {
  // In the first generation, this op takes the two strings themselves, as in the second generation,
  // instead of a reference to them.
  const OpGeneration taken =
      generation == OpGeneration::kReference ? OpGeneration::kStrings : generation;
  return {.doc =
              "Returns the array of gradients of an array: it holds the gradients of the array's "
              "elements. The first call makes it. `source` distinguishes several gradients of one "
              "array. Writes to the same element are added up.",
          .inputs = {HandleArg(taken), {"flow_in", "float"}},
          .outputs = HandleAndFlow(generation, "grad_handle"),
          .attrs = {{"source", Strings{}}},
          .shape = [generation](ShapeScope& s) -> Status {
            RETURN_IF_ERROR(s.WithRank(1, 0).status());
            ResourceHandle::Element element;
            if (s.num_inputs() == 2 && s.element(0) != nullptr) element = *s.element(0);
            SetHandleShape(s, generation, element);
            return OkStatus();
          },
          .gradient = NoGradient,
          .stateful = true};
}

OpDef TensorArrayGradWithShapeOp() {
  OpDef op = TensorArrayGradOp(OpGeneration::kResource);
  op.doc = "The same as TensorArrayGradV3, with added leading dimensions of each element.";
  op.inputs.push_back({"shape_to_prepend", "int32"});
  return op;
}

OpDef TensorArraySizeOp(OpGeneration generation) {
  return {.doc = "Returns the number of elements of an array.",
          .inputs = {HandleArg(generation), {"flow_in", "float"}},
          .outputs = {{"size", "int32"}},
          .shape = [](ShapeScope& s) -> Status {
            RETURN_IF_ERROR(s.WithRank(1, 0).status());
            return ScalarShape(s);
          },
          .gradient = NoGradient,
          .stateful = true};
}

OpDef TensorArrayCloseOp(OpGeneration generation) {
  return {.doc = "Deletes an array and its elements.",
          .inputs = {HandleArg(generation)},
          .shape = NoOutputs,
          .gradient = NoGradient,
          .stateful = true};
}

OP(TensorArray) { return TensorArrayOp(OpGeneration::kReference); }
OP(TensorArrayV2) { return TensorArrayOp(OpGeneration::kStrings); }
OP(TensorArrayV3) { return TensorArrayOp(OpGeneration::kResource); }
OP(TensorArrayGrad) { return TensorArrayGradOp(OpGeneration::kReference); }
OP(TensorArrayGradV2) { return TensorArrayGradOp(OpGeneration::kStrings); }
OP(TensorArrayGradV3) { return TensorArrayGradOp(OpGeneration::kResource); }
OP(TensorArrayGradWithShape) { return TensorArrayGradWithShapeOp(); }
OP(TensorArraySize) { return TensorArraySizeOp(OpGeneration::kReference); }
OP(TensorArraySizeV2) { return TensorArraySizeOp(OpGeneration::kStrings); }
OP(TensorArraySizeV3) { return TensorArraySizeOp(OpGeneration::kResource); }
OP(TensorArrayClose) { return TensorArrayCloseOp(OpGeneration::kReference); }
OP(TensorArrayCloseV2) { return TensorArrayCloseOp(OpGeneration::kStrings); }
OP(TensorArrayCloseV3) { return TensorArrayCloseOp(OpGeneration::kResource); }
KERNEL_ANY_TYPE(TensorArray, TensorArrayKernel);
KERNEL_ANY_TYPE(TensorArrayV2, TensorArrayKernel);
KERNEL_ANY_TYPE(TensorArrayV3, TensorArrayKernel);
KERNEL_ANY_TYPE(TensorArrayGrad, TensorArrayGradKernel);
KERNEL_ANY_TYPE(TensorArrayGradV2, TensorArrayGradKernel);
KERNEL_ANY_TYPE(TensorArrayGradV3, TensorArrayGradKernel);
KERNEL_ANY_TYPE(TensorArrayGradWithShape, TensorArrayGradKernel);
KERNEL_ANY_TYPE(TensorArraySize, TensorArraySizeKernel);
KERNEL_ANY_TYPE(TensorArraySizeV2, TensorArraySizeKernel);
KERNEL_ANY_TYPE(TensorArraySizeV3, TensorArraySizeKernel);
KERNEL_ANY_TYPE(TensorArrayClose, TensorArrayCloseKernel);
KERNEL_ANY_TYPE(TensorArrayCloseV2, TensorArrayCloseKernel);
KERNEL_ANY_TYPE(TensorArrayCloseV3, TensorArrayCloseKernel);

}  // namespace
}  // namespace penstock

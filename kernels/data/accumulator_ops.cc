// SPDX-License-Identifier: Apache-2.0
//
// The ops that create and use accumulators. Dense accumulators have two forms, one with ref edges
// and one with resource handles; sparse accumulators have only ref edges.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/data/accumulator.h"
#include "kernels/data/handle_kernel.h"

namespace penstock {
namespace {

template <bool kSparse>
class AccumulatorKernel final : public HandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(HandleKernel::Init(node));
    RETURN_IF_ERROR(node.Attr("dtype", &spec_.dtype));
    RETURN_IF_ERROR(node.Attr("shape", &spec_.shape));
    std::string reduction;
    RETURN_IF_ERROR(node.Attr("reduction_type", &reduction));
    spec_.mean = reduction == "MEAN";
    spec_.sparse = kSparse;
    if (kSparse) spec_.type = kSparseAccumulator;
    return OkStatus();
  }

 private:
  const char* Type() const override { return spec_.type; }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    return std::make_shared<Accumulator>(resource_name(), spec_);
  }
  Status Check(const Resource& resource) const override {
    const AccumulatorSpec& is = static_cast<const Accumulator&>(resource).spec();
    if (is.dtype == spec_.dtype && is.shape == spec_.shape && is.mean == spec_.mean) {
      return OkStatus();
    }
    const auto text = [](const AccumulatorSpec& spec) {
      return StrCat(Name(spec.dtype), spec.shape.ToString(), spec.mean ? " (MEAN)" : " (SUM)");
    };
    return InvalidArgument("accumulator '", resource_name(), "' exists already, as ", text(is),
                           " where this node says ", text(spec_));
  }

  AccumulatorSpec spec_;
};

StatusOr<std::shared_ptr<Accumulator>> Input(const KernelContext& ctx, bool sparse) {
  ASSIGN_OR_RETURN(auto accumulator, ResourceInput<Accumulator>(ctx, 0));
  if (accumulator->spec().sparse == sparse) return accumulator;
  return InvalidArgument("'", accumulator->name(), "' is a ", accumulator->TypeName());
}

class ApplyKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto accumulator, Input(ctx, /*sparse=*/false));
    ASSIGN_OR_RETURN(const int64_t step, IntScalar(ctx.input(1), "local_step"));
    return accumulator->Add(step, {ctx.TakeInput(2)}, ctx.origin());
  }
};

class SparseApplyKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("has_known_shape", &has_known_shape_);
  }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto accumulator, Input(ctx, /*sparse=*/true));
    ASSIGN_OR_RETURN(const int64_t step, IntScalar(ctx.input(1), "local_step"));
    SummedGradient gradient{ctx.input(3), ctx.input(2)};
    if (gradient.indices.dtype() != DType::kInt64) {
      return InvalidArgument("gradient_indices must be int64, are ",
                             Name(gradient.indices.dtype()));
    }
    if (has_known_shape_) {
      RETURN_IF_ERROR(IntVector(ctx.input(4), "gradient_shape").status());
      gradient.shape = ctx.input(4);
      if (gradient.shape.dtype() != DType::kInt64) {
        return InvalidArgument("gradient_shape must be int64");
      }
    }
    return accumulator->Add(step, std::move(gradient), ctx.origin());
  }

 private:
  bool has_known_shape_ = false;
};

template <bool kSparse>
class TakeKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    auto accumulator = Input(ctx, kSparse);
    if (!accumulator.ok()) return std::move(done)(accumulator.status());
    const auto required = RequiredGradients(**accumulator, ctx);
    if (!required.ok()) return std::move(done)(required.status());
    const auto receive = [&ctx](SummedGradient gradient) {
      if (kSparse) ctx.SetOutput(0, std::move(gradient.indices));
      ctx.SetOutput(kSparse ? 1 : 0, std::move(gradient.values));
      if (kSparse) ctx.SetOutput(2, std::move(gradient.shape));
      return OkStatus();
    };
    (*accumulator)->Take(*required, receive, CallerOf(ctx), std::move(done));
  }

 private:
  static StatusOr<int64_t> RequiredGradients(const Accumulator& accumulator,
                                             const KernelContext& ctx) {
    const DType wanted = ctx.output_type(kSparse ? 1 : 0).dtype;
    if (wanted != accumulator.spec().dtype) {
      return InvalidArgument("accumulator '", accumulator.name(), "' is of type ",
                             Name(accumulator.spec().dtype), ", not ", Name(wanted));
    }
    ASSIGN_OR_RETURN(const int64_t required, IntScalar(ctx.input(1), "num_required"));
    if (required > 0) return required;
    return InvalidArgument("Argument num_required must be positive, but was ", required);
  }
};

class NumAccumulatedKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto accumulator, ResourceInput<Accumulator>(ctx, 0));
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    *output->mutable_data<int32_t>() = static_cast<int32_t>(accumulator->num_accumulated());
    return OkStatus();
  }
};

class SetGlobalStepKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto accumulator, ResourceInput<Accumulator>(ctx, 0));
    ASSIGN_OR_RETURN(const int64_t step, IntScalar(ctx.input(1), "new_global_step"));
    accumulator->set_global_step(step, ctx.origin());
    return OkStatus();
  }
};

Status SparseTakeShape(ShapeScope& s) {
  s.set_output(0, PartialShape({PartialShape::kUnknown}));
  s.set_output(2, PartialShape({PartialShape::kUnknown}));
  return OkStatus();
}
// Sets the output's shape to the element shape that the handle carries, if it carries one.
Status TakeShape(ShapeScope& s) {
  if (s.element(0) != nullptr) s.set_output(0, s.element(0)->shape);
  return OkStatus();
}
Status AccumulatorHandleShape(ShapeScope& s) {
  s.set_output_element(0, {s.attr<EdgeType>("dtype").dtype, s.attr<PartialShape>("shape")});
  return ResourceHandleShape(s);
}

OpDef AccumulatorOp(HandleForm form, std::string doc) {
  const bool ref = form == HandleForm::kRef;
  return {.doc = std::move(doc),
          .outputs = {{"handle", HandleType(form)}},
          .types = {{"dtype", kFloating}},
          .attrs = {{"shape", Shapes{}},
                    {"container", ""},
                    {"shared_name", ""},
                    {"reduction_type", OneOf{{"MEAN", "SUM"}}, "MEAN"}},
          .shape = ref ? RefHandleShape : AccumulatorHandleShape,
          .gradient = NoGradient,
          .examples = {{.attrs = {{"shape", Shape({2})}}}},
          .stateful = true};
}
OpDef DenseOp(HandleForm form) {
  return AccumulatorOp(
      form,
      "Makes an accumulator, which collects gradients until enough have arrived, and "
      "then returns their mean or sum. It ignores gradients of earlier steps.");
}
OpDef UseOp(HandleForm form, std::string doc) {
  return {.doc = std::move(doc),
          .inputs = {{"handle", HandleType(form)}},
          .shape = NoOutputs,
          .gradient = NoGradient,
          .stateful = true};
}
OpDef ApplyOp(HandleForm form) {
  OpDef op =
      UseOp(form, "Adds a gradient; ignores it if local_step is before the accumulator's step.");
  op.inputs.push_back({"local_step", "int64"});
  op.inputs.push_back({.name = "gradient", .type = "dtype", .is_gradient = true});
  op.types = {{"dtype", kFloating}};
  op.may_wait = true;
  op.resource_use = ResourceUse::kPuts;
  op.update_rule = "a sum of gradients";
  return op;
}
OpDef NumOp(HandleForm form) {
  OpDef op = UseOp(form, "Returns the number of gradients in the accumulator.");
  op.outputs = {{"num_accumulated", "int32"}};
  op.shape = ScalarShape;
  return op;
}
OpDef SetStepOp(HandleForm form) {
  OpDef op = UseOp(form, "Sets the step of an accumulator.");
  op.inputs.push_back({"new_global_step", "int64"});
  return op;
}
OpDef TakeOp(HandleForm form) {
  OpDef op = UseOp(form,
                   "Waits until num_required gradients have arrived, and takes their mean or sum. "
                   "Increases the accumulator's step by one.");
  op.inputs.push_back({"num_required", "int32"});
  op.outputs = {{"average", "dtype"}};
  op.types = {{"dtype", kFloating}};
  op.shape = form == HandleForm::kRef ? UnknownShape : TakeShape;
  op.may_wait = true;
  op.resource_use = ResourceUse::kTakes;
  return op;
}
OpDef SparseApplyOp() {
  OpDef op =
      UseOp(HandleForm::kRef, "The same as AccumulatorApplyGradient, for rows of a gradient.");
  op.inputs.push_back({"local_step", "int64"});
  op.inputs.push_back({"gradient_indices", "int64"});
  op.inputs.push_back({.name = "gradient_values", .type = "dtype", .is_gradient = true});
  op.inputs.push_back({"gradient_shape", "int64"});
  op.types = {{"dtype", kFloating}};
  op.attrs = {{"has_known_shape", Bools{}}};
  op.may_wait = true;
  op.resource_use = ResourceUse::kPuts;
  op.update_rule = "a sum of gradients";
  return op;
}
OpDef SparseTakeOp() {
  OpDef op =
      UseOp(HandleForm::kRef,
            "The same as AccumulatorTakeGradient, for rows of gradients. Returns the rows "
            "that arrived, sorted by index; the mean of a row is over the gradients that have "
            "that row.");
  op.inputs.push_back({"num_required", "int32"});
  op.outputs = {{"indices", "int64"}, {"values", "dtype"}, {"shape", "int64"}};
  op.types = {{"dtype", kFloating}};
  op.shape = SparseTakeShape;
  op.may_wait = true;
  op.resource_use = ResourceUse::kTakes;
  return op;
}

OP(ConditionalAccumulator) { return DenseOp(HandleForm::kRef); }
OP(ResourceConditionalAccumulator) {
  OpDef op = DenseOp(HandleForm::kResource);
  op.holds_parameters = true;
  return op;
}
OP(AccumulatorApplyGradient) { return ApplyOp(HandleForm::kRef); }
OP(ResourceAccumulatorApplyGradient) { return ApplyOp(HandleForm::kResource); }
OP(AccumulatorNumAccumulated) { return NumOp(HandleForm::kRef); }
OP(ResourceAccumulatorNumAccumulated) { return NumOp(HandleForm::kResource); }
OP(AccumulatorSetGlobalStep) { return SetStepOp(HandleForm::kRef); }
OP(ResourceAccumulatorSetGlobalStep) { return SetStepOp(HandleForm::kResource); }
OP(AccumulatorTakeGradient) { return TakeOp(HandleForm::kRef); }
OP(ResourceAccumulatorTakeGradient) { return TakeOp(HandleForm::kResource); }
OP(SparseConditionalAccumulator) {
  return AccumulatorOp(HandleForm::kRef,
                       "The same as ConditionalAccumulator, for rows of gradients.");
}

OP(SparseAccumulatorApplyGradient) { return SparseApplyOp(); }
OP(SparseAccumulatorTakeGradient) { return SparseTakeOp(); }
KERNEL_ANY_TYPE(ConditionalAccumulator, AccumulatorKernel<false>);
KERNEL_ANY_TYPE(ResourceConditionalAccumulator, AccumulatorKernel<false>);
KERNEL_ANY_TYPE(AccumulatorApplyGradient, ApplyKernel);
KERNEL_ANY_TYPE(ResourceAccumulatorApplyGradient, ApplyKernel);
KERNEL_ANY_TYPE(AccumulatorNumAccumulated, NumAccumulatedKernel);
KERNEL_ANY_TYPE(ResourceAccumulatorNumAccumulated, NumAccumulatedKernel);
KERNEL_ANY_TYPE(AccumulatorSetGlobalStep, SetGlobalStepKernel);
KERNEL_ANY_TYPE(ResourceAccumulatorSetGlobalStep, SetGlobalStepKernel);
KERNEL_ANY_TYPE(AccumulatorTakeGradient, TakeKernel<false>);
KERNEL_ANY_TYPE(ResourceAccumulatorTakeGradient, TakeKernel<false>);
KERNEL_ANY_TYPE(SparseConditionalAccumulator, AccumulatorKernel<true>);
KERNEL_ANY_TYPE(SparseAccumulatorApplyGradient, SparseApplyKernel);
KERNEL_ANY_TYPE(SparseAccumulatorTakeGradient, TakeKernel<true>);

}  // namespace
}  // namespace penstock

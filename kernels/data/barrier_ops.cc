// SPDX-License-Identifier: Apache-2.0
//
// The ops on barriers. They exist only in the form with ref edges.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/data/barrier.h"
#include "kernels/data/element_batch.h"
#include "kernels/data/handle_kernel.h"

namespace penstock {
namespace {

class BarrierKernel final : public HandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(HandleKernel::Init(node));
    RETURN_IF_ERROR(node.Attr("component_types", &spec_.types));
    RETURN_IF_ERROR(node.Attr("shapes", &spec_.shapes));
    int64_t capacity = -1;
    RETURN_IF_ERROR(node.Attr("capacity", &capacity));
    if (capacity >= 0) return InvalidArgument("a barrier has no capacity, not ", capacity);
    if (spec_.shapes.size() != spec_.types.size()) {
      return InvalidArgument("All of the component shapes must be specified: there are ",
                             spec_.shapes.size(), " for ", spec_.types.size(), " components");
    }
    for (const PartialShape& shape : spec_.shapes) {
      if (!shape.fully_known()) {
        return InvalidArgument("a barrier has to know all of the shape ", shape.ToString());
      }
    }
    return OkStatus();
  }

 private:
  const char* Type() const override { return "Barrier"; }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    return std::make_shared<Barrier>(resource_name(), spec_);
  }
  Status Check(const Resource& resource) const override {
    if (static_cast<const Barrier&>(resource).spec() == spec_) return OkStatus();
    return InvalidArgument("barrier '", resource_name(),
                           "' exists already, with components of other types or shapes");
  }

  Barrier::Spec spec_;
};

class InsertManyKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("component_index", &index_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto barrier, ResourceInput<Barrier>(ctx, 0));
    const Barrier::Spec& spec = barrier->spec();
    const Tensor &keys = ctx.input(1), &values = ctx.input(2);
    if (index_ < 0 || index_ >= static_cast<int>(spec.types.size())) {
      return InvalidArgument("The component ID is out of range ", index_,
                             " > num_components (= ", spec.types.size(), ")");
    }
    if (keys.dtype() != DType::kString || keys.rank() != 1) {
      return InvalidArgument("keys must be a vector of strings, are ", Name(keys.dtype()),
                             keys.shape().ToString());
    }
    if (values.dtype() != spec.types[index_]) {
      return InvalidArgument("component ", index_, " is ", Name(spec.types[index_]),
                             ", the values are ", Name(values.dtype()));
    }
    RETURN_IF_ERROR(CheckComponents({values}, {spec.shapes[index_]}, /*batched=*/true));
    if (values.dim(0) != keys.dim(0)) {
      return InvalidArgument(keys.dim(0), " keys for ", values.dim(0), " values");
    }
    ASSIGN_OR_RETURN(std::vector<Element> rows, SplitBatch({values}));
    return barrier->Insert(index_, keys.flat<std::string>(), std::move(rows), ctx.origin());
  }

 private:
  int index_ = 0;
};

class TakeManyKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(RequireNoTimeout(node));
    RETURN_IF_ERROR(node.Attr("allow_small_batch", &options_.allow_small_batch));
    return node.Attr("wait_for_incomplete", &options_.wait_for_incomplete);
  }

  void ComputeAsync(KernelContext& ctx, Done done) override {
    auto barrier = ResourceInput<Barrier>(ctx, 0);
    if (!barrier.ok()) return std::move(done)(barrier.status());
    const auto count = Count(**barrier, ctx);
    if (!count.ok()) return std::move(done)(count.status());
    const auto receive = [&ctx, barrier = *barrier](const std::vector<Element>& tuples) -> Status {
      for (int i = 0; i < ctx.num_outputs(); ++i) {
        const PartialShape shape = i < 2 ? PartialShape::Scalar() : barrier->spec().shapes[i - 2];
        RETURN_IF_ERROR(StackElements(tuples, i, shape, ctx, i));
      }
      return OkStatus();
    };
    (*barrier)->Take(*count, options_, receive, CallerOf(ctx), std::move(done));
  }

 private:
  static StatusOr<int64_t> Count(const Barrier& barrier, const KernelContext& ctx) {
    std::vector<DType> types;
    for (int i = 2; i < ctx.num_outputs(); ++i) types.push_back(ctx.output_type(i).dtype);
    if (types != barrier.spec().types) {
      return InvalidArgument("barrier '", barrier.name(), "' has components of other types");
    }
    ASSIGN_OR_RETURN(const int64_t count, IntScalar(ctx.input(1), "num_elements"));
    if (count < 0) return InvalidArgument("num_elements must be >= 0, is ", count);
    return count;
  }

  Barrier::TakeOptions options_;
};

class BarrierCloseKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("cancel_pending_enqueues", &drop_);
  }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto barrier, ResourceInput<Barrier>(ctx, 0));
    return barrier->Close(drop_, ctx.origin());
  }

 private:
  bool drop_ = false;
};

template <int64_t (Barrier::*kSize)() const>
class BarrierSizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto barrier, ResourceInput<Barrier>(ctx, 0));
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    *output->mutable_data<int32_t>() = static_cast<int32_t>(((*barrier).*kSize)());
    return OkStatus();
  }
};

Status TakeManyShape(ShapeScope& s) {
  std::vector<int64_t> count;
  if (s.ConstantInts(1, &count) && count[0] < 0) {
    return InvalidArgument("num_elements must be >= 0, is ", count[0]);
  }
  for (int i = 0; i < 2; ++i) s.set_output(i, PartialShape({PartialShape::kUnknown}));
  return OkStatus();
}
Status InsertManyShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  return s.WithRankAtLeast(2, 1).status();
}

OpDef UseOp(std::string doc) {
  return {.doc = std::move(doc),
          .inputs = {{"handle", Ref("string")}},
          .shape = NoOutputs,
          .gradient = NoGradient,
          .stateful = true};
}
OpDef SizeOp(std::string doc) {
  OpDef op = UseOp(std::move(doc));
  op.outputs = {{"size", "int32"}};
  op.shape = ScalarShape;
  return op;
}
OpDef InsertManyOp() {
  OpDef op = UseOp("Inserts one component of the tuples of the given keys.");
  op.inputs.push_back({"keys", "string"});
  op.inputs.push_back({"values", "T"});
  op.types = {{"T", kAllTypes}};
  op.attrs = {{"component_index", Ints{}}};
  op.shape = InsertManyShape;
  op.may_wait = true;
  op.resource_use = ResourceUse::kPuts;
  return op;
}
OpDef TakeManyOp() {
  OpDef op = UseOp("Takes complete tuples, the oldest first. Waits until there are enough.");
  op.inputs.push_back({"num_elements", "int32"});
  op.outputs = {{"indices", "int64"}, {"keys", "string"}, {"values", List("component_types")}};
  op.attrs = {{"component_types", TypeList{.min_length = 1}},
              {"allow_small_batch", false},
              {"wait_for_incomplete", false},
              {"timeout_ms", -1}};
  op.shape = TakeManyShape;
  op.may_wait = true;
  op.resource_use = ResourceUse::kTakes;
  return op;
}
OpDef CloseOp() {
  OpDef op = UseOp(
      "Closes a barrier: it accepts no new keys. Incomplete tuples can still be "
      "completed, unless cancel_pending_enqueues is set.");
  op.attrs = {{"cancel_pending_enqueues", false}};
  op.may_wait = true;
  op.resource_use = ResourceUse::kPuts;
  return op;
}

OP(Barrier) {
  return {
      .doc =
          "Makes a barrier, which assembles tuples from components that are inserted "
          "separately, by key.",
      .outputs = {{"handle", Ref("string")}},
      .attrs = {{"component_types", TypeList{.min_length = 1}},
                {"shapes", ShapeList{}, std::vector<PartialShape>{}},
                {"capacity", -1},
                {"container", ""},
                {"shared_name", ""}},
      .shape = RefHandleShape,
      .gradient = NoGradient,
      .examples = {{.attrs = {{"component_types", std::vector<DType>{DType::kFloat}},
                              {"shapes", std::vector<PartialShape>{PartialShape({2})}}}}},
      .stateful = true,
  };
}

OP(BarrierInsertMany) { return InsertManyOp(); }
OP(BarrierTakeMany) { return TakeManyOp(); }
OP(BarrierClose) { return CloseOp(); }
OP(BarrierReadySize) { return SizeOp("Returns the number of complete tuples."); }
OP(BarrierIncompleteSize) { return SizeOp("Returns the number of incomplete tuples."); }
KERNEL_ANY_TYPE(Barrier, BarrierKernel);
KERNEL_ANY_TYPE(BarrierInsertMany, InsertManyKernel);
KERNEL_ANY_TYPE(BarrierTakeMany, TakeManyKernel);
KERNEL_ANY_TYPE(BarrierClose, BarrierCloseKernel);
KERNEL_ANY_TYPE(BarrierReadySize, BarrierSizeKernel<&Barrier::ready_size>);
KERNEL_ANY_TYPE(BarrierIncompleteSize, BarrierSizeKernel<&Barrier::incomplete_size>);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Stage, Unstage, StagePeek, StageSize, StageClear: nodes with the same shared_name and container
// use the same staging area. No op holds a thread while it waits.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/data/staging_area.h"
#include "kernels/data/staging_kernel.h"

namespace penstock {

// `min_types` is 0 for ops that neither take nor return tensors: they may have no dtypes.
OpDef StagingOp(const char* doc, int64_t min_types) {
  return {
      .doc = doc,
      .attrs = {{"capacity", Ints{.min = 0}, 0},
                {"memory_limit", Ints{.min = 0}, 0},
                {"dtypes", TypeList{.min_length = min_types}},
                {"container", ""},
                {"shared_name", ""}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
  };
}

namespace {

class AreaKernel : public StagingKernel<StagingArea> {
 protected:
  AreaKernel() : StagingKernel("StagingArea") {}
  std::shared_ptr<StagingArea> Make(const std::string& name,
                                    const StagingArea::Limits& limits) const final {
    return std::make_shared<StagingArea>(name, limits);
  }
};

// Returns a function that writes the components of an element to the outputs.
StagingArea::Receive ToOutputs(KernelContext& ctx) {
  return [&ctx](Element element) {
    for (size_t i = 0; i < element.size(); ++i) {
      ctx.SetOutput(static_cast<int>(i), std::move(element[i]));
    }
  };
}

class StageKernel final : public AreaKernel {
 protected:
  void Use(StagingArea& area, KernelContext& ctx, Done done) const override {
    Element element;
    for (int i = 0; i < ctx.num_inputs(); ++i) element.push_back(ctx.TakeInput(i));
    area.Stage(std::move(element), CallerOf(ctx), std::move(done));
  }
};

class UnstageKernel final : public AreaKernel {
 protected:
  void Use(StagingArea& area, KernelContext& ctx, Done done) const override {
    area.Unstage(dtypes(), ToOutputs(ctx), CallerOf(ctx), std::move(done));
  }
};

class StagePeekKernel final : public AreaKernel {
 protected:
  void Use(StagingArea& area, KernelContext& ctx, Done done) const override {
    const auto index = IntScalar(ctx.input(0), "index");
    if (!index.ok()) return std::move(done)(index.status());
    if (*index < 0) return std::move(done)(InvalidArgument("index must be >= 0, is ", *index));
    area.Peek(*index, dtypes(), ToOutputs(ctx), CallerOf(ctx), std::move(done));
  }
};

class StageSizeKernel final : public AreaKernel {
 public:
  bool WaitsForNodes() const override { return false; }

 protected:
  void Use(StagingArea& area, KernelContext& ctx, Done done) const override {
    ctx.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(area.size())));
    std::move(done)(OkStatus());
  }
};

class StageClearKernel final : public AreaKernel {
 protected:
  void Use(StagingArea& area, KernelContext& ctx, Done done) const override {
    area.Clear(ctx.origin());
    std::move(done)(OkStatus());
  }
};

OpDef StageOp() {
  OpDef op = StagingOp("Adds a tuple of tensors to a staging area. Waits while it is full.", 1);
  op.inputs = {{"values", List("dtypes")}};
  op.may_wait = true;
  op.resource_use = ResourceUse::kPuts;
  return op;
}
OpDef UnstageOp(const char* doc) {
  OpDef op = StagingOp(doc, 1);
  op.outputs = {{"values", List("dtypes")}};
  op.shape = UnknownShape;
  op.may_wait = true;
  op.resource_use = ResourceUse::kTakes;
  op.untestable_alone = "waits for another op: kernels/data has its tests";
  return op;
}
OpDef StagePeekOp() {
  OpDef op = UnstageOp(
      "Returns the tuple at an index of a staging area, and keeps it there. Waits until "
      "there is one.");
  op.inputs = {{"index", "int32"}};
  op.resource_use = ResourceUse::kOther;  // removes nothing, so it makes no room for Stage
  return op;
}
OpDef StageSizeOp() {
  OpDef op = StagingOp("Returns the number of tuples in a staging area.", 0);
  op.outputs = {{"size", "int32"}};
  op.shape = ScalarShape;
  op.examples = {{.attrs = {{"dtypes", EmptyList()}}}};
  return op;
}
OpDef StageClearOp() {
  OpDef op = StagingOp("Removes all tuples from a staging area.", 0);
  op.may_wait = true;
  op.resource_use = ResourceUse::kTakes;
  op.examples = {{.attrs = {{"dtypes", EmptyList()}}}};
  return op;
}

OP(Stage) { return StageOp(); }
OP(Unstage) {
  return UnstageOp("Takes the oldest tuple from a staging area. Waits while it is empty.");
}
OP(StagePeek) { return StagePeekOp(); }
OP(StageSize) { return StageSizeOp(); }
OP(StageClear) { return StageClearOp(); }
KERNEL_ANY_TYPE(Stage, StageKernel);
KERNEL_ANY_TYPE(Unstage, UnstageKernel);
KERNEL_ANY_TYPE(StagePeek, StagePeekKernel);
KERNEL_ANY_TYPE(StageSize, StageSizeKernel);
KERNEL_ANY_TYPE(StageClear, StageClearKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// _Feed and _Fetch: the ops through which tensors enter and leave a step. Both work on host memory.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class FeedKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("index", &index_); }

  Status Compute(KernelContext& ctx) override {
    const StepContext& step = ctx.step();
    if (index_ >= step.num_feeds) {
      return InvalidArgument("feed ", index_, " of a step that is fed ", step.num_feeds,
                             " tensors");
    }
    const Tensor& fed = step.feeds[index_];
    const DType wanted = ctx.output_type(0).dtype;
    if (fed.dtype() != wanted) {
      return InvalidArgument("feed ", index_, " must be ", Name(wanted), ", is ",
                             fed.valid() ? Name(fed.dtype()) : "missing");
    }
    ctx.SetOutput(0, fed);
    return OkStatus();
  }
  int64_t CostNanos() const override { return 20; }

 private:
  int index_ = 0;
};

class FetchKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("index", &index_); }

  Status Compute(KernelContext& ctx) override {
    const StepContext& step = ctx.step();
    if (index_ >= step.num_fetches) {
      return InvalidArgument("fetch ", index_, " of a step that fetches ", step.num_fetches,
                             " tensors");
    }
    step.fetches[index_] = ctx.TakeInput(0);
    return OkStatus();
  }
  int64_t CostNanos() const override { return 20; }

 private:
  int index_ = 0;
};

OP(_Feed) {
  return {
      .doc = "Returns the tensor that is fed to the step at `index`.",
      .outputs = {{"value", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"index", Ints{.min = 0}}},
      .shape = UnknownShape,
      .gradient = NoGradient,
      .stateful = true,
      .end = EndOp::kFeed,
  };
}

OP(_Fetch) {
  return {
      .doc = "Returns its input to the caller of the step, at `index`.",
      .inputs = {{"value", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"index", Ints{.min = 0}}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
      .end = EndOp::kFetch,
  };
}
KERNEL_ANY_TYPE(_Feed, FeedKernel);
KERNEL_ANY_TYPE(_Fetch, FetchKernel);
KERNEL_DEF({.op = "_Feed", .device = "GPU", .host_args = {"value"}, .make = Make<FeedKernel>});
KERNEL_DEF({.op = "_Fetch", .device = "GPU", .host_args = {"value"}, .make = Make<FetchKernel>});

}  // namespace
}  // namespace penstock

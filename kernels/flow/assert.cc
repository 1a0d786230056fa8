// SPDX-License-Identifier: Apache-2.0
//
// Assert: ends the step with an error if a condition is false, and shows some tensors.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/flow/summarize.h"

namespace penstock {
namespace {

class AssertKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("summarize", &summarize_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor& condition = ctx.input(0);
    if (condition.rank() != 0) {
      return InvalidArgument("In[0] should be a scalar: ", condition.shape().ToString());
    }
    if (condition.scalar<bool>()) return OkStatus();
    std::string message = "assertion failed:";
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      StrAppend(&message, " [", Summarize(ctx.input(i), summarize_), "]");
    }
    return InvalidArgument(message);
  }
  int64_t CostNanos() const override { return 20; }

 private:
  int64_t summarize_ = 3;
};

Status AssertShape(ShapeScope& s) { return s.WithRank(0, 0).status(); }

OP(Assert) {
  return {
      .doc =
          "Fails with InvalidArgument unless `condition` is true. The error shows "
          "`summarize` elements of each tensor of `data`.",
      .inputs = {{"condition", "bool"}, {"data", List("T")}},
      .attrs = {{"T", TypeList{.min_length = 1, .allowed = kAllTypes}}, {"summarize", 3}},
      .shape = AssertShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{}, {1}}}, {{{2}}, {{}}}}}},
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(Assert, AssertKernel);
KERNEL_DEF({.op = "Assert",
            .device = "GPU",
            .host_args = {"condition", "data"},
            .make = Make<AssertKernel>});

}  // namespace
}  // namespace penstock

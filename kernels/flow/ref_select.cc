// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class RefSelectKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& index = ctx.input(0);
    const int choices = ctx.num_inputs() - 1;
    if (index.rank() != 0) {
      return InvalidArgument("Index must be a scalar, has shape ", index.shape().ToString());
    }
    const int32_t chosen = index.scalar<int32_t>();
    if (chosen < 0 || chosen >= choices) {
      return InvalidArgument("Index must be in the range [0, ", choices, ") but got ", chosen);
    }
    ctx.SetOutput(0, ctx.TakeInput(1 + chosen));
    return OkStatus();
  }
};

Status RefSelectShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  for (int i = 2; i < s.num_inputs(); ++i) {
    if (s.input(i).ToString() != s.input(1).ToString()) return UnknownShape(s);
  }
  s.set_output(0, s.input(1));
  return OkStatus();
}

OP(RefSelect) {
  return {
      .doc = "Returns inputs[index], a reference to a variable.",
      .inputs = {{"index", "int32"}, {"inputs", Repeat("N", Ref("T"))}},
      .outputs = {{"output", Ref("T")}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"N", Ints{.min = 1}}},
      .shape = RefSelectShape,
      .examples = {{.inputs = {{{{}, {1}}}, {{{2}}, {{2}}}}}},
      .allows_uninitialized_input = true,
  };
}
KERNEL_ANY_TYPE(RefSelect, RefSelectKernel);
KERNEL_DEF(
    {.op = "RefSelect", .device = "GPU", .host_args = {"index"}, .make = Make<RefSelectKernel>});

}  // namespace
}  // namespace penstock

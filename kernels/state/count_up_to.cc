// SPDX-License-Identifier: Apache-2.0
//
// CountUpTo, ResourceCountUpTo: return the value of a counter variable and increment the variable.
// OutOfRange if the counter has reached its limit.
#include <algorithm>
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

template <class T>
class CountUpToKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("limit", &limit_); }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0, kDTypeOf<T>));
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    Variable* const one[] = {variable.get()};
    return Variable::Update(one, ctx.origin(), [&](absl::Span<Tensor* const> values) -> Status {
      Tensor& value = *values[0];
      if (value.rank() != 0) {
        return InvalidArgument("the variable must be a scalar, has shape ",
                               value.shape().ToString());
      }
      T& counter = *value.mutable_data<T>();
      if (counter >= std::min<int64_t>(limit_, std::numeric_limits<T>::max())) {
        return OutOfRange("Reached limit of ", limit_);
      }
      *output->mutable_data<T>() = counter++;
      return OkStatus();
    });
  }

 private:
  int64_t limit_ = 0;
};

OP(CountUpTo) {
  return {
      .doc =
          "Returns the value of a variable and then increases it by one. OutOfRange if it "
          "has reached the limit.",
      .inputs = {{"ref", Ref("T")}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kIndex}},
      .attrs = {{"limit", Ints{}}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{}, {1}}}}, .attrs = {{"limit", 10}}}},
  };
}
KERNEL(CountUpTo, CountUpToKernel, int32_t, int64_t);

OP(ResourceCountUpTo) {
  return {
      .doc =
          "Returns the value of a variable and then increases it by one. OutOfRange if it "
          "has reached the limit.",
      .inputs = {{"resource", "resource"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kIndex}},
      .attrs = {{"limit", Ints{}}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{}, {1}}}}, .attrs = {{"limit", 10}}}},
      .stateful = true,
  };
}
KERNEL(ResourceCountUpTo, CountUpToKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock

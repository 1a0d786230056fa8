// SPDX-License-Identifier: Apache-2.0
//
// ToBool: converts the conditions of If and While that are not of type bool.
#include <string>
#include <type_traits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"

namespace penstock {
namespace {

template <class T>
class ToBoolKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const bool holds = input.rank() == 0 ? IsTrue(input.scalar<T>()) : input.num_elements() > 0;
    ctx.SetOutput(0, Tensor::Scalar(holds));
    return OkStatus();
  }

 private:
  static bool IsTrue(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      return !value.empty();
    } else {
      return value != T(0);
    }
  }
};

DTypes ConditionTypes() {
  DTypes types = kNumber;
  types.push_back(DType::kBool);
  types.push_back(DType::kString);
  return types;
}

OP(ToBool) {
  return {
      .doc =
          "Returns whether a condition holds: a number that is not zero, a string that is not "
          "empty, or a tensor of rank 1 or more that has elements.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "bool"}},
      .types = {{"T", ConditionTypes()}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}}}}}},
  };
}
KERNEL(ToBool, ToBoolKernel, NUMBER_TYPES, bool, std::string);
// On a GPU, conditions are in host memory, as in Switch.
const KernelDeclaration on_gpu([]() -> std::vector<KernelDef> {
  std::vector<KernelDef> kernels =
      OnHost(KernelsByType<ToBoolKernel, NUMBER_TYPES, bool, std::string>("ToBool", "T"),
             {"input", "output"});
  for (KernelDef& kernel : kernels) kernel.device = "GPU";
  return kernels;
});

}  // namespace
}  // namespace penstock

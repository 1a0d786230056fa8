// SPDX-License-Identifier: Apache-2.0
//
// CheckNumerics: returns its input; returns an error if the input contains NaN or infinity.
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

// Classifies a float by its bits: if all bits of the exponent are ones it is infinity, or NaN if
// the fraction is not 0.
template <class Bits>
void Find(const Tensor& tensor, Bits exponent, bool* nan, bool* infinite) {
  const auto* bits = static_cast<const Bits*>(tensor.raw_data());
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() >> 1;
  Bits largest = 0;  // as magnitudes, NaN > infinity > finite
  bool any_infinite = false;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const Bits magnitude = bits[i] & kMagnitude;
    largest = std::max(largest, magnitude);
    any_infinite |= magnitude == exponent;
  }
  *nan = largest > exponent;
  *infinite = any_infinite;
}

class CheckNumericsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("message", &message_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& tensor = ctx.input(0);
    bool nan = false, infinite = false;
    switch (tensor.dtype()) {
      case DType::kHalf:
        Find<uint16_t>(tensor, 0x7c00, &nan, &infinite);
        break;
      case DType::kBfloat16:
        Find<uint16_t>(tensor, 0x7f80, &nan, &infinite);
        break;
      case DType::kFloat:
        Find<uint32_t>(tensor, 0x7f800000, &nan, &infinite);
        break;
      case DType::kDouble:
        Find<uint64_t>(tensor, uint64_t{0x7ff} << 52, &nan, &infinite);
        break;
      default:
        return Unimplemented("CheckNumerics of ", Name(tensor.dtype()));
    }
    if (nan || infinite) {
      return InvalidArgument(message_, " : Tensor had ",
                             nan && infinite ? "Inf and NaN"
                             : nan           ? "NaN"
                                             : "Inf",
                             " values");
    }
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }

 private:
  std::string message_;
};

std::vector<Gradient> CheckNumericsGradient(const GradientScope& g) {
  return {Call("CheckNumerics", {g.dy()},
               {{"message", StrCat("Not a number (NaN) or infinity (Inf) values detected in "
                                   "gradient. ",
                                   g.attr<std::string>("message"))}})};
}

OP(CheckNumerics) {
  return {
      .doc =
          "Returns the input. InvalidArgument, with `message`, if an element is NaN or "
          "infinite.",
      .inputs = {{"tensor", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = {{"message", Strings{}}},
      .shape = SameShape,
      .gradient = CheckNumericsGradient,
      .examples = {{.inputs = {{{{2, 3}}}}, .attrs = {{"message", "the weights"}}}},
      // Stateful because the op can fail: stateful nodes are neither folded nor merged with equal
      // nodes.
      .stateful = true,
      .is_view = true,
  };
}
KERNEL_ANY_TYPE(CheckNumerics, CheckNumericsKernel);

}  // namespace
}  // namespace penstock

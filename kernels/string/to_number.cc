// SPDX-License-Identifier: Apache-2.0
//
// StringToNumber: parses numbers.
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/string/strings.h"

namespace penstock {
namespace {

// Parses the whole text except surrounding white space. Returns false if that is not a number of
// type T. Floats may have any form that C allows, and become infinite if they exceed the range.
// Integers must fit the type.
template <class T>
bool Parse(const std::string& text, T* number) {
  if constexpr (std::is_integral_v<T>) {
    return absl::SimpleAtoi(text, number);
  } else {
    const std::string stripped(absl::StripAsciiWhitespace(text));
    char* end = nullptr;
    if constexpr (std::is_same_v<T, float>) {
      *number = std::strtof(stripped.c_str(), &end);
    } else {
      *number = std::strtod(stripped.c_str(), &end);
    }
    return !stripped.empty() && end == stripped.c_str() + stripped.size();
  }
}

template <class T>
class StringToNumberKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    return MapStrings<T>(ctx, [](const std::string& text, T* number) -> Status {
      if (Parse(text, number)) return OkStatus();
      return InvalidArgument("StringToNumberOp could not correctly convert string: ", text);
    });
  }
};

}  // namespace

OP(StringToNumber) {
  return {
      .doc = "Converts each string to a number.",
      .inputs = {{"string_tensor", "string"}},
      .outputs = {{"output", "out_type"}},
      .types = {{"out_type",
                 {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64, DType::kUint32,
                  DType::kUint64},
                 DType::kFloat}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}}}}},
  };
}
KERNEL_BY("out_type", StringToNumber, StringToNumberKernel, float, double, int32_t, int64_t,
          uint32_t, uint64_t);

}  // namespace penstock

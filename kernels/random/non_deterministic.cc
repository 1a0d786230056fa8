// SPDX-License-Identifier: Apache-2.0
//
// NonDeterministicInts: random integers that no seed determines. tf.random.Generator seeds itself
// with them.
#include <algorithm>
#include <cstring>

#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

class NonDeterministicIntsKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    char* to = static_cast<char*>(output->mutable_raw_data());
    for (size_t left = output->bytes(); left > 0;) {
      const uint64_t bits = ctx.step().env->RandomU64();
      const size_t count = std::min(left, sizeof(bits));
      std::memcpy(to, &bits, count);
      to += count;
      left -= count;
    }
    return OkStatus();
  }
};

Status NonDeterministicShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OP(NonDeterministicInts) {
  return {
      .doc = "Random integers over all values of the type, which no seed determines.",
      .inputs = {{"shape", "shape_dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype",
                 {DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64},
                 DType::kInt64},
                {"shape_dtype", kIndex, DType::kInt64}},
      .shape = NonDeterministicShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, 3}}}}}},
      .stateful = true,
      .seedless = true,
  };
}
KERNEL_ANY_TYPE(NonDeterministicInts, NonDeterministicIntsKernel);

}  // namespace
}  // namespace penstock

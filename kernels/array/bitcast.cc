// SPDX-License-Identifier: Apache-2.0
//
// Bitcast: reinterprets the bytes of a tensor as another dtype.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/types.h"

namespace penstock {
namespace {

// Returns the shape after the cast: a narrower type appends a dimension, a wider type removes the
// last one. InvalidArgument if the last dimension is not as long as the wider type requires.
StatusOr<Dims> CastDims(absl::Span<const int64_t> dims, DType from, DType to) {
  const auto in = static_cast<int64_t>(SizeOf(from)), out = static_cast<int64_t>(SizeOf(to));
  Dims cast(dims.begin(), dims.end());
  if (in > out) {
    cast.push_back(in / out);
  } else if (in < out) {
    if (cast.empty() || (cast.back() >= 0 && cast.back() != out / in)) {
      return InvalidArgument("Cannot bitcast from ", Name(from), " to ", Name(to),
                             ": the last dimension must be ", out / in, ", the shape is ",
                             PartialShape(dims).ToString());
    }
    cast.pop_back();
  }
  return cast;
}

class BitcastKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor input = ctx.TakeInput(0);
    const DType to = ctx.output_type(0).dtype;
    ASSIGN_OR_RETURN(const Dims dims, CastDims(input.shape().dims(), input.dtype(), to));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    ctx.SetOutput(0, input.Reinterpreted(to, shape));
    return OkStatus();
  }
};

Status BitcastShape(ShapeScope& s) {
  if (!s.input(0).known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(const Dims dims, CastDims(s.input(0).dims(), s.attr<EdgeType>("T").dtype,
                                             s.attr<EdgeType>("type").dtype));
  return SetOutput(s, 0, dims);
}

OP(Bitcast) {
  return {
      .doc = "Reinterprets the bytes of the input as elements of `type`.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "type"}},
      .types = {{"T", With(kNumber, kQuantized)}, {"type", With(kNumber, kQuantized)}},
      .shape = BitcastShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}}, .attrs = {{"type", DType::kInt8}}},
                   {.inputs = {{{{2, 4}}}},
                    .attrs = {{"T", DType::kInt8}, {"type", DType::kFloat}}}},
      .is_view = true,
  };
}
KERNEL_ANY_TYPE(Bitcast, BitcastKernel);

}  // namespace
}  // namespace penstock

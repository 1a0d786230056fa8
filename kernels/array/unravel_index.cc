// SPDX-License-Identifier: Apache-2.0
//
// UnravelIndex: converts flat indices to coordinates in a tensor of a given shape.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

template <class T>
class UnravelIndexKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    if (indices.rank() > 1) {
      return InvalidArgument("The indices can only be scalar or vector, got shape ",
                             indices.shape().ToString());
    }
    ASSIGN_OR_RETURN(const Shape box, ShapeVector(ctx.input(1), "dims"));
    if (box.rank() == 0) return InvalidArgument("dims must not be empty");
    for (const T index : indices.flat<T>()) {
      if (index >= 0 && index < box.num_elements()) continue;
      return InvalidArgument("index is out of bound as with dims: ", index, " is not in [0, ",
                             box.num_elements(), ")");
    }
    const int64_t count = indices.num_elements();
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(
        0, indices.rank() == 0 ? Shape({box.rank()}) : Shape({box.rank(), count}), &output));
    T* coordinates = output->mutable_data<T>();
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = indices.data<T>()[i];
      for (int d = box.rank() - 1; d >= 0; --d) {
        coordinates[d * count + i] = static_cast<T>(rest % box.dim(d));
        rest /= box.dim(d);
      }
    }
    return OkStatus();
  }
};

Status UnravelIndexShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape dims, s.WithRank(1, 1));
  const PartialShape& indices = s.input(0);
  if (!indices.known_rank()) return UnknownShape(s);
  PartialShape shape({dims.known_rank() ? dims.dim(0) : PartialShape::kUnknown});
  for (const int64_t size : indices.dims()) shape.AddDim(size);
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OP(UnravelIndex) {
  return {
      .doc =
          "Converts flat indices into a tensor of shape dims to coordinates, one column for "
          "each index.",
      .inputs = {{"indices", "Tidx"}, {"dims", "Tidx"}},
      .outputs = {{"output", "Tidx"}},
      .types = {{"Tidx", kIndex, DType::kInt32}},
      .shape = UnravelIndexShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}, {22, 41, 37}}}, {{{2}, {7, 6}}}}},
                   {.inputs = {{{{}, {5}}}, {{{2}, {2, 3}}}}}},
  };
}
KERNEL_BY("Tidx", UnravelIndex, UnravelIndexKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock

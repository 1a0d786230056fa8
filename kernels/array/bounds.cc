// SPDX-License-Identifier: Apache-2.0
//
// LowerBound, UpperBound: the positions at which values would be inserted into sorted rows.
#include <algorithm>
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

// Returns, for each value, its position in its sorted row: if kUpper, behind the elements that
// equal the value, else before them.
template <class T, bool kUpper>
class BoundKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &sorted = ctx.input(0), &values = ctx.input(1);
    if (sorted.rank() != 2 || values.rank() != 2 || sorted.dim(0) != values.dim(0)) {
      return InvalidArgument(
          "sorted_inputs and values must be matrices of as many rows; their shapes are ",
          sorted.shape().ToString(), " and ", values.shape().ToString());
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, values.shape(), &output));
    const int64_t length = sorted.dim(1), columns = values.dim(1);
    const bool wide = output->dtype() == DType::kInt64;
    if (!wide && length > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("rows of ", length, " elements are too long for int32 output");
    }
    const T *rows = sorted.data<T>(), *wanted = values.data<T>();
    ctx.threads().ParallelFor(values.num_elements(), 50, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *first = rows + i / columns * length, *last = first + length;
        const T* place = kUpper ? std::upper_bound(first, last, wanted[i])
                                : std::lower_bound(first, last, wanted[i]);
        if (wide) {
          output->mutable_data<int64_t>()[i] = place - first;
        } else {
          output->mutable_data<int32_t>()[i] = static_cast<int32_t>(place - first);
        }
      }
    });
    return OkStatus();
  }
};
template <class T>
using LowerBoundKernel = BoundKernel<T, false>;
template <class T>
using UpperBoundKernel = BoundKernel<T, true>;

Status BoundShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape sorted, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(PartialShape values, s.WithRank(1, 2));
  if (sorted.known_rank() && values.known_rank()) {
    ASSIGN_OR_RETURN(const PartialShape rows,
                     PartialShape({sorted.dim(0)}).Merge(PartialShape({values.dim(0)})));
    values.set_dim(0, rows.dim(0));
  }
  s.set_output(0, std::move(values));
  return OkStatus();
}

OpDef BoundOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"sorted_inputs", "T"}, {"values", "T"}},
      .outputs = {{"output", "out_type"}},
      .types = {{"T", kReal}, {"out_type", kIndex, DType::kInt32}},
      .shape = BoundShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}, {1, 2, 3, 2, 2, 4}}}, {{{2, 2}, {2, 5, 2, 1}}}}}},
  };
}

OP(LowerBound) {
  return BoundOp(
      "Returns, for each value, the number of elements of its sorted row that are less "
      "than it.");
}
OP(UpperBound) {
  return BoundOp(
      "Returns, for each value, the number of elements of its sorted row that are not "
      "greater than it.");
}
KERNEL(LowerBound, LowerBoundKernel, half, bfloat16, float, double, int8_t, int16_t, int32_t,
       int64_t, uint8_t, uint16_t, uint32_t, uint64_t);
KERNEL(UpperBound, UpperBoundKernel, half, bfloat16, float, double, int8_t, int16_t, int32_t,
       int64_t, uint8_t, uint16_t, uint32_t, uint64_t);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// RaggedRange: returns rows of numbers; each row has its own start, limit and delta.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/ragged/row_splits.h"

namespace penstock {
namespace {

// Returns how many of start, start + delta, ... come before `limit`. InvalidArgument if delta is 0,
// or if 64 bits cannot count them.
template <class T>
StatusOr<int64_t> CountOf(T start, T limit, T delta) {
  if (delta == T(0)) return InvalidArgument("Requires delta != 0");
  if (delta > T(0) ? !(start < limit) : !(limit < start)) return 0;
  if constexpr (std::is_integral_v<T>) {
    const auto wide = [](T x) { return static_cast<uint64_t>(static_cast<int64_t>(x)); };
    const uint64_t way = delta > 0 ? wide(limit) - wide(start) : wide(start) - wide(limit);
    const uint64_t step = delta > 0 ? wide(delta) : -wide(delta);
    const uint64_t count = (way - 1) / step + 1;
    if (count <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return static_cast<int64_t>(count);
    }
  } else {
    const double count = std::ceil(std::abs((double(limit) - double(start)) / double(delta)));
    if (count < 9e18) return static_cast<int64_t>(count);
  }
  return InvalidArgument("Requires ((limit - start) / delta) to fit in 64 bits");
}

// One argument of all rows: a vector, or a scalar that is used for every row.
template <class T>
struct PerRow {
  const T* data;
  int64_t step;
  T operator[](int64_t row) const { return data[row * step]; }
};

template <class T>
class RaggedRangeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    int64_t rows = -1;
    PerRow<T> inputs[3];
    const char* const names[] = {"starts", "limits", "deltas"};
    for (int i = 0; i < 3; ++i) {
      const Tensor& input = ctx.input(i);
      if (input.rank() > 1) return InvalidArgument(names[i], " must be a scalar or vector");
      inputs[i] = {input.data<T>(), input.rank()};
      if (input.rank() == 0) continue;
      if (rows >= 0 && rows != input.dim(0)) {
        return InvalidArgument("starts, limits, and deltas must have the same shape");
      }
      rows = input.dim(0);
    }
    if (rows < 0) rows = 1;
    RowSplits splits = {0};
    for (int64_t row = 0; row < rows; ++row) {
      ASSIGN_OR_RETURN(const int64_t count,
                       CountOf<T>(inputs[0][row], inputs[1][row], inputs[2][row]));
      int64_t end;
      if (__builtin_add_overflow(splits.back(), count, &end)) {
        return InvalidArgument("there are more values than 64 bits can count");
      }
      splits.push_back(end);
    }
    RETURN_IF_ERROR(WriteSplits(ctx, 0, splits));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({splits.back()}));
    Tensor* values;
    RETURN_IF_ERROR(ctx.Allocate(1, shape, &values));
    T* to = values->mutable_data<T>();
    for (int64_t row = 0; row < rows; ++row) {
      T value = inputs[0][row];
      for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
        *to++ = value;
        // Does not add the delta to the last number, because the sum might overflow T.
        if (i + 1 < splits[row + 1]) value = static_cast<T>(value + inputs[2][row]);
      }
    }
    return OkStatus();
  }
};

Status RangeShape(ShapeScope& s) {
  int64_t rows = 1;
  for (int i = 0; i < 3; ++i) {
    const PartialShape& shape = s.input(i);
    if (shape.known_rank() && shape.rank() > 1) return s.WithRank(i, 1).status();
    if (!shape.known_rank()) rows = PartialShape::kUnknown;
    if (shape.known_rank() && shape.rank() == 1 && rows == 1) rows = shape.dim(0);
  }
  s.set_output(0, PartialShape{rows < 0 ? PartialShape::kUnknown : rows + 1});
  s.set_output(1, PartialShape{PartialShape::kUnknown});
  return OkStatus();
}

}  // namespace

OP(RaggedRange) {
  return {
      .doc =
          "Returns, in each row, the numbers from its start up to (excluding) its limit, in "
          "steps of its delta. A scalar is used for all rows.",
      .inputs = {{"starts", "T"}, {"limits", "T"}, {"deltas", "T"}},
      .outputs = {{"rt_nested_splits", "Tsplits"}, {"rt_dense_values", "T"}},
      .types = {{"T",
                 {DType::kBfloat16, DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64},
                 DType::kInt32},
                SplitsType()},
      .shape = RangeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}, {0, 5, 8}}}, {{{3}, {3, 5, 0}}}, {{{3}, {1, 1, -3}}}}}},
  };
}
KERNEL(RaggedRange, RaggedRangeKernel, bfloat16, float, double, int32_t, int64_t);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Range, LinSpace: arithmetic sequences.
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

// The type in which elements are computed: float for 16-bit floats, uint64_t (which wraps around)
// for integers.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                std::conditional_t<std::is_same_v<T, double>, double, float>>;

template <class T>
StatusOr<int64_t> CountSteps(T start, T limit, T delta) {
  if constexpr (std::is_integral_v<T>) {
    const bool up = delta > 0;
    const uint64_t distance =
        up ? uint64_t(limit) - uint64_t(start) : uint64_t(start) - uint64_t(limit);
    const uint64_t step = up ? uint64_t(delta) : uint64_t{0} - uint64_t(delta);
    const uint64_t count = distance / step + (distance % step != 0);
    if (count <= uint64_t(std::numeric_limits<int64_t>::max())) return int64_t(count);
  } else {
    const double count = std::ceil(std::abs((double(limit) - double(start)) / double(delta)));
    if (count < 0x1p62) return static_cast<int64_t>(count);  // false for NaN
  }
  return InvalidArgument("a range has more elements than an int64 can count");
}

template <class T>
StatusOr<int64_t> CountOf(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  const T from = start.scalar<T>(), to = limit.scalar<T>(), step = delta.scalar<T>();
  if (step == T(0)) return InvalidArgument("Requires delta != 0");
  const auto text = [](T value) { return StrCat(+value); };
  if (step > T(0) && from > to) {
    return InvalidArgument("Requires start <= limit when delta > 0: ", text(from), "/", text(to));
  }
  if (step < T(0) && from < to) {
    return InvalidArgument("Requires start >= limit when delta < 0: ", text(from), "/", text(to));
  }
  return CountSteps(from, to, step);
}

Status CheckScalar(const Tensor& tensor, string_view name) {
  if (tensor.num_elements() == 1 && tensor.rank() <= 1) return OkStatus();
  return InvalidArgument(name, " must be a scalar, has shape ", tensor.shape().ToString());
}

template <class T>
class RangeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckScalar(ctx.input(0), "start"));
    RETURN_IF_ERROR(CheckScalar(ctx.input(1), "limit"));
    RETURN_IF_ERROR(CheckScalar(ctx.input(2), "delta"));
    ASSIGN_OR_RETURN(const int64_t count, CountOf<T>(ctx.input(0), ctx.input(1), ctx.input(2)));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({count}));
    const auto start = static_cast<Wide<T>>(ctx.input(0).scalar<T>());
    const auto delta = static_cast<Wide<T>>(ctx.input(2).scalar<T>());
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    T* out = output->mutable_data<T>();
    ctx.threads().ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out[i] = static_cast<T>(start + static_cast<Wide<T>>(i) * delta);
      }
    });
    return OkStatus();
  }
};

template <class T>
StatusOr<int64_t> CountFromConstants(const ShapeScope& s) {
  return CountOf<T>(*s.constant(0), *s.constant(1), *s.constant(2));
}

StatusOr<int64_t> RangeCount(const ShapeScope& s) {
  for (int i = 0; i < 3; ++i) {
    if (s.constant(i) == nullptr || s.constant(i)->num_elements() != 1)
      return PartialShape::kUnknown;
  }
  switch (s.constant(0)->dtype()) {
    case DType::kInt32:
      return CountFromConstants<int32_t>(s);
    case DType::kInt64:
      return CountFromConstants<int64_t>(s);
    case DType::kFloat:
      return CountFromConstants<float>(s);
    case DType::kDouble:
      return CountFromConstants<double>(s);
    default:
      return PartialShape::kUnknown;
  }
}

Status RangeShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int64_t count, RangeCount(s));
  return SetOutput(s, 0, {count});
}

template <class T>
class LinSpaceKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckScalar(ctx.input(0), "start"));
    RETURN_IF_ERROR(CheckScalar(ctx.input(1), "stop"));
    ASSIGN_OR_RETURN(const int64_t num, IntScalar(ctx.input(2), "num"));
    if (num <= 0) return InvalidArgument("Requires num > 0: ", num);
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({num}));
    const auto start = static_cast<Wide<T>>(ctx.input(0).scalar<T>());
    const auto stop = static_cast<Wide<T>>(ctx.input(1).scalar<T>());
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    T* out = output->mutable_data<T>();
    const Wide<T> step = num > 1 ? (stop - start) / static_cast<Wide<T>>(num - 1) : Wide<T>(0);
    for (int64_t i = 0; i < num; ++i) {
      out[i] = static_cast<T>(start + step * static_cast<Wide<T>>(i));
    }
    if (num > 1) out[num - 1] = static_cast<T>(stop);
    return OkStatus();
  }
};

Status LinSpaceShape(ShapeScope& s) {
  std::vector<int64_t> num;
  const bool known = s.ConstantInts(2, &num) && num.size() == 1;
  if (known && num[0] <= 0) return InvalidArgument("Requires num > 0: ", num[0]);
  return SetOutput(s, 0, {known ? num[0] : PartialShape::kUnknown});
}

OP(Range) {
  return {
      .doc = "Returns start, start + delta, ..., up to (excluding) limit.",
      .inputs = {{"start", "Tidx"}, {"limit", "Tidx"}, {"delta", "Tidx"}},
      .outputs = {{"output", "Tidx"}},
      .types = {{"Tidx", kReal, DType::kInt32}},
      .shape = RangeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{.values = {1}}}, {{.values = {7}}}, {{.values = {2}}}}}},
  };
}

OP(LinSpace) {
  return {
      .doc = "Returns `num` evenly spaced values from start to stop, both included.",
      .inputs = {{"start", "T"}, {"stop", "T"}, {"num", "Tidx"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}, {"Tidx", kIndex, DType::kInt32}},
      .shape = LinSpaceShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{.values = {0.1}}}, {{.values = {0.9}}}, {{.values = {5}}}}}},
  };
}

KERNEL_BY("Tidx", Range, RangeKernel, REAL_TYPES);
KERNEL(LinSpace, LinSpaceKernel, FLOATING_TYPES);

}  // namespace
}  // namespace penstock

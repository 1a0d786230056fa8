// SPDX-License-Identifier: Apache-2.0
//
// IsotonicRegression: the non-increasing sequence that is closest to each row.
//
// M. J. Best, N. Chakravarti: Active set algorithms for isotonic regression; a unifying framework.
// Mathematical Programming 47 (1990).
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

// A run of elements of a row that get the same value, their mean.
template <class T>
struct Pool {
  int64_t begin, end;
  T sum, mean;
};

template <class T>
T CountAs(int64_t count) {
  if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(count));
  } else {
    return static_cast<T>(count);
  }
}

// Solves one row by the pool-adjacent-violators algorithm: elements become pools of their own, from
// left to right, and a pool merges into the previous one while its mean is larger. `pools` is
// scratch memory.
template <class In, class Out>
void FitRow(const In* row, int64_t n, std::vector<Pool<Out>>& pools, Out* values,
            int32_t* segments) {
  pools.clear();
  for (int64_t i = 0; i < n; ++i) {
    const Out x = static_cast<Out>(row[i]);
    Pool<Out> pool{i, i + 1, x, x};
    while (!pools.empty() && pool.mean > pools.back().mean) {
      const Pool<Out>& previous = pools.back();
      pool.begin = previous.begin;
      pool.sum = previous.sum + pool.sum;
      pool.mean = pool.sum / CountAs<Out>(pool.end - pool.begin);
      pools.pop_back();
    }
    pools.push_back(pool);
  }
  for (size_t k = 0; k < pools.size(); ++k) {
    std::fill(values + pools[k].begin, values + pools[k].end, pools[k].mean);
    std::fill(segments + pools[k].begin, segments + pools[k].end, static_cast<int32_t>(k));
  }
}

template <class In, class Out>
class IsotonicRegressionKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const int64_t n = input.rank() == 0 ? 1 : input.dim(input.rank() - 1);
    if (n > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("Tensor too large: a row has ", n, " elements, at most 2^31 - 1");
    }
    Tensor *values, *segments;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &values));
    RETURN_IF_ERROR(ctx.Allocate(1, input.shape(), &segments));
    if (input.num_elements() == 0) return OkStatus();
    Out* const value_data = values->mutable_data<Out>();
    int32_t* const segment_data = segments->mutable_data<int32_t>();
    ctx.threads().ParallelFor(
        input.num_elements() / n, 10.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
          std::vector<Pool<Out>> pools;
          for (int64_t at = begin * n; at < end * n; at += n) {
            FitRow(input.data<In>() + at, n, pools, value_data + at, segment_data + at);
          }
        });
    return OkStatus();
  }
};

// Every element of a segment moves with the mean of the segment: its gradient is the mean of the
// segment's gradients.
Gradients IsotonicGradient(const GradientScope& g) {
  const Output zero = g.Const<int32_t>(0), one = g.Const<int32_t>(1);
  const Output all = g.Const(Tensor::Vector<int32_t>({-1}));
  const Output dy = Reshape(g.dy(), all), count = SizeOf(dy);
  // The length of a row; 1 for scalars.
  const Output dims = ConcatV2({g.Const(Tensor::Vector<int32_t>({1})), ShapeOf(g.x())}, zero);
  const Output length = Maximum(Gather(dims, RankOf(g.x()), zero), one);
  // The segments of all rows get different numbers: row start + segment.
  const Output places = Range(zero, count, one);
  const Output ids = Reshape(g.y(1), all) + places - Call("FloorMod", {places, length});
  const auto sum = [&](Output x) {
    return Gather(Call("UnsortedSegmentSum", {x, ids, count}), ids, zero);
  };
  return {Cast(Reshape(sum(dy) / sum(OnesLike(dy)), ShapeOf(g.x())), g.dtype())};
}

template <class In, class Out>
KernelDef IsotonicKernel() {
  return {.op = "IsotonicRegression",
          .types = {{"T", kDTypeOf<In>}, {"output_dtype", kDTypeOf<Out>}},
          .make = Make<IsotonicRegressionKernel<In, Out>>};
}

// TensorFlow's combinations of types.
std::vector<KernelDef> IsotonicKernels() {
  return {IsotonicKernel<half, half>(),      IsotonicKernel<bfloat16, bfloat16>(),
          IsotonicKernel<float, float>(),    IsotonicKernel<double, double>(),
          IsotonicKernel<int8_t, float>(),   IsotonicKernel<int16_t, float>(),
          IsotonicKernel<int32_t, double>(), IsotonicKernel<int64_t, double>()};
}
const KernelDeclaration isotonic_kernels(IsotonicKernels);

}  // namespace

OP(IsotonicRegression) {
  OpDef op = {
      .doc =
          "Replaces each row of the last dimension by the non-increasing sequence with the "
          "smallest sum of squared differences. The sequence consists of runs of equal values; "
          "`segments` has the number of the run to which each element belongs.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "output_dtype"}, {"segments", "int32"}},
      .types = {{"T", kReal}, {"output_dtype", kFloating, DType::kFloat}},
      .shape = SameShape,
      .gradient = IsotonicGradient,
  };
  for (const KernelDef& kernel : IsotonicKernels()) {
    op.examples.push_back({.inputs = {{{{2, 4}, {0.3, 0.5, 0.2, 0.1, 0.9, 0.1, 0.7, 0.3}}}},
                           .attrs = {{"T", kernel.types.at("T")},
                                     {"output_dtype", kernel.types.at("output_dtype")}}});
  }
  return op;
}

}  // namespace penstock

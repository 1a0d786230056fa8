// SPDX-License-Identifier: Apache-2.0
//
// Cumsum, Cumprod, CumulativeLogsumexp: running sums, products and logarithms of sums of
// exponentials along an axis.
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/reduction.h"
#include "kernels/math/axis.h"
#include "kernels/math/forms.h"
#if defined(PENSTOCK_CUDA_DEVICE)
#include "kernels/engine/cuda_launch.cuh"
#endif

namespace penstock {
namespace {

// As in Sum, the running value has a wider type than the elements.
struct RunningSum {
  template <class A>
  DEVICE_FN static A First() {
    return A(0);
  }
  template <class A>
  DEVICE_FN static A Next(A a, A x) {
    return a + x;
  }
};

struct RunningProduct {
  template <class A>
  DEVICE_FN static A First() {
    return A(1);
  }
  template <class A>
  DEVICE_FN static A Next(A a, A x) {
    return a * x;
  }
};

struct RunningLogSumExp {
  template <class A>
  DEVICE_FN static A First() {
    return -std::numeric_limits<A>::infinity();
  }
  template <class A>
  DEVICE_FN static A Next(A a, A x) {
    const A high = a > x ? a : x, low = a > x ? x : a;
    return high == low && std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
  }
};

struct ScanOptions {
  bool exclusive = false;  // exclusive: a result does not include the element itself
  bool reverse = false;    // reverse: the scan starts at the end
};

// Scans `width` adjacent columns of one [length, inner] matrix, row by row. REQUIRES: width <=
// kWidth.
template <class S, class X, int kWidth>
DEVICE_FN void ScanColumns(const X* x, X* y, int64_t length, int64_t inner, int64_t width,
                           ScanOptions options) {
  using L = LoopType<X>;
  using A = Wide<L>;
  A running[kWidth];
  for (A& r : running) r = S::template First<A>();
  for (int64_t i = 0; i < length; ++i) {
    const int64_t row = (options.reverse ? length - 1 - i : i) * inner;
    for (int64_t j = 0; j < width; ++j) {
      const A before = running[j];
      running[j] = S::Next(before, static_cast<A>(static_cast<L>(x[row + j])));
      y[row + j] = static_cast<X>(static_cast<L>(options.exclusive ? before : running[j]));
    }
  }
}

#if defined(PENSTOCK_CUDA_DEVICE)
template <class S, class X>
__global__ void ScanOnDevice(AxisView view, const X* x, X* y, ScanOptions options) {
  FOR_EACH_ON_DEVICE(i, view.outer * view.inner) {
    const int64_t at = i / view.inner * view.length * view.inner + i % view.inner;
    ScanColumns<S, X, 1>(x + at, y + at, view.length, view.inner, 1, options);
  }
}
#endif

template <class S>
struct Scan {
  template <class T>
  class Kernel final : public penstock::Kernel {
   public:
    Status Init(const KernelInit& node) override {
      RETURN_IF_ERROR(node.Attr("exclusive", &options_.exclusive));
      return node.Attr("reverse", &options_.reverse);
    }

    Status Compute(KernelContext& ctx) override {
      const Tensor& x = ctx.input(0);
      ASSIGN_OR_RETURN(const int axis, AxisValue(ctx.input(1), x.rank(), "scan axis"));
      const AxisView view = ViewAlong(x.shape(), axis);
      Tensor* y;
      RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, x.shape(), &y));
      if (x.num_elements() == 0) return OkStatus();
#if defined(PENSTOCK_CUDA_DEVICE)
      using X = DeviceElement<T>;
      ScanOnDevice<S>
          <<<GridFor(view.outer * view.inner), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(
              view, static_cast<const X*>(x.raw_data()), static_cast<X*>(y->mutable_raw_data()),
              options_);
      return LaunchStatus();
#else
      Run(ctx.threads(), view, x.data<T>(), y->mutable_data<T>());
      return OkStatus();
#endif
    }

   private:
#if !defined(PENSTOCK_CUDA_DEVICE)
    void Run(Scheduler& threads, const AxisView& view, const T* x, T* y) const {
      constexpr int64_t kWidth = 64;
      const int64_t strips = (view.inner + kWidth - 1) / kWidth;
      const int64_t width = std::min(kWidth, view.inner);
      threads.ParallelFor(
          view.outer * strips, 1.0 * view.length * width, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const int64_t first = i % strips * kWidth;
              const int64_t at = i / strips * view.length * view.inner + first;
              ScanColumns<S, T, kWidth>(x + at, y + at, view.length, view.inner,
                                        std::min(kWidth, view.inner - first), options_);
            }
          });
    }
#endif
    ScanOptions options_;
  };
};

OpDef ScanOp(const char* doc, const DTypes& types, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"x", "T"}, {"axis", "Tidx"}},
      .outputs = {{"out", "T"}},
      .types = {{"T", types}, {"Tidx", kIndex, DType::kInt32}},
      .attrs = {{"exclusive", AttrValue(false)}, {"reverse", AttrValue(false)}},
      .shape = [](ShapeScope& s) -> Status {
        RETURN_IF_ERROR(KnownAxis(s, 1).status());
        return SameShape(s);
      },
      .gradient = std::move(gradient),
      .examples = {{.inputs = {{{{2, 3}}}, {{{}, {1}}}}},
                   {.inputs = {{{{2, 3}}}, {{{}, {0}}}},
                    .attrs = {{"exclusive", true}, {"reverse", true}}}},
      .reuses = Reuse::kFirst,
  };
}

// Scans `x` in the opposite direction: for each element, sums `x` over the results to which the
// element contributes.
Output ScanBack(const GradientScope& g, Output x, const char* op = "Cumsum") {
  return Call(op, {x, g.x(1)},
              {{"exclusive", g.attr<bool>("exclusive")}, {"reverse", !g.attr<bool>("reverse")}});
}

// Returns the sum of dy_i e^(x_j - y_i) over all i to which j contributes and for which dy_i has
// the sign of `sign`. It is computed as a sum of exponentials, by CumulativeLogsumexp.
Output LogSumExpPart(const GradientScope& g, double sign) {
  const Output dy = g.dy() * sign;
  const Output counts = Greater(dy, ZerosLike(dy));
  // Stands for the logarithm of zero: in every type, this number is finite and its exponential is
  // zero.
  const Output none = ZerosLike(dy) - 6e4;
  const Output logs = Select(counts, Log(Select(counts, dy, OnesLike(dy))), none);
  return Exp(ScanBack(g, logs - g.y(), "CumulativeLogsumexp") + g.x());
}

}  // namespace

OP(Cumsum) {
  return ScanOp("The sum of all elements up to each one along an axis.", kNumber,
                [](const GradientScope& g) -> Gradients {
                  return {ScanBack(g, g.dy()), Gradient()};
                });
}
KERNEL_HOST_ARGS(("axis"), Cumsum, Scan<RunningSum>::Kernel, NUMBER_TYPES);

OP(Cumprod) {
  return ScanOp("The product of all elements up to each one along an axis.", kNumber,
                [](const GradientScope& g) -> Gradients {
                  const Output sums = ScanBack(g, Conj(g.y()) * g.dy());
                  return {Call("DivNoNan", {sums, Conj(g.x())}), Gradient()};
                });
}
KERNEL_HOST_ARGS(("axis"), Cumprod, Scan<RunningProduct>::Kernel, NUMBER_TYPES);

static OpDef CumulativeLogsumexpOp() {
  OpDef op = ScanOp(
      "The logarithm of the sum of the exponentials of all elements up to each one along an axis.",
      kFloating, [](const GradientScope& g) -> Gradients {
        return {LogSumExpPart(g, 1) - LogSumExpPart(g, -1), Gradient()};
      });
  // The gradient's exponentials are zero where the result is -infinity.
  op.examples[1].check_gradient = false;
  return op;
}

OP(CumulativeLogsumexp) { return CumulativeLogsumexpOp(); }
KERNEL_HOST_ARGS(("axis"), CumulativeLogsumexp, Scan<RunningLogSumExp>::Kernel, FLOATING_TYPES);

}  // namespace penstock

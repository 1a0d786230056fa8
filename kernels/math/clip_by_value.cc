// SPDX-License-Identifier: Apache-2.0
#include "core/op/block_kernel.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/broadcast.h"
#include "kernels/engine/functor.h"
#include "kernels/math/forms.h"
#if defined(PENSTOCK_CUDA_DEVICE)
#include "kernels/engine/cuda_launch.cuh"
#endif

namespace penstock {
namespace {

// Returns x clipped to [low, high]. NaN stays NaN. If `low` exceeds `high`, the result is `low`.
template <class L>
DEVICE_FN L Clipped(L x, L low, L high) {
  const L lowered = x > high ? high : x;
  return lowered < low ? low : lowered;
}

#if defined(PENSTOCK_CUDA_DEVICE)

template <class T>
__global__ void ClipOnDevice(DeviceBroadcast plan, const T* x, const T* low, const T* high, T* y,
                             int64_t n) {
  using L = LoopType<T>;
  FOR_EACH_ON_DEVICE(i, n) {
    int64_t at[3];
    plan.Locate(i, at);
    y[i] = static_cast<T>(Clipped<L>(static_cast<L>(x[at[0]]), static_cast<L>(low[at[1]]),
                                     static_cast<L>(high[at[2]])));
  }
}

template <class T>
Status Run(KernelContext& ctx, const BroadcastPlan& plan, const T* x, const T* low, const T* high,
           T* y) {
  ASSIGN_OR_RETURN(const DeviceBroadcast device, DeviceBroadcast::Make(plan));
  const int64_t n = plan.output().num_elements();
  ClipOnDevice<<<GridFor(n), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(device, x, low, high,
                                                                              y, n);
  return LaunchStatus();
}

#else

template <class T>
void ClipRow(const T* x, const T* low, int64_t low_step, const T* high, int64_t high_step, T* y,
             int64_t n) {
  using L = LoopType<T>;
  if (low_step == 0 && high_step == 0) {
    const L least = *low, most = *high;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = T(Clipped<L>(x[i], least, most));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = T(Clipped<L>(x[i], low[i * low_step], high[i * high_step]));
    }
  }
}

template <class T>
Status Run(KernelContext& ctx, const BroadcastPlan& plan, const T* x, const T* low, const T* high,
           T* y) {
  plan.ForEachPanel(ctx.threads(), 0.1 * sizeof(T), [&](const BroadcastPanel& p) {
    for (int64_t r = 0; r < p.rows; ++r) {
      ClipRow(x + p.offset[0] + r * p.row_step[0], low + p.offset[1] + r * p.row_step[1],
              !p.repeats[1], high + p.offset[2] + r * p.row_step[2], !p.repeats[2],
              y + p.out + r * p.n, p.n);
    }
  });
  return OkStatus();
}

#endif

template <class T>
class ClipByValueKernel final : public Kernel, public BlockKernel {
 public:
  bool AcceptsShapes(const Shape& output, absl::Span<const Shape* const> inputs) const override {
    return *inputs[0] == output;
  }
  double BlockNanos() const override { return 0.15; }
#if defined(PENSTOCK_CUDA_DEVICE)
  bool RunsInBlocks() const override { return false; }
  void RunBlock(const BlockInput*, void*, int64_t) const override {}
#else
  bool RunsInBlocks() const override { return true; }
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override {
    const auto data = [&](int i) { return static_cast<const T*>(inputs[i].data); };
    ClipRow(data(0), data(1), !inputs[1].repeats, data(2), !inputs[2].repeats,
            static_cast<T*>(output), n);
  }
#endif
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(
        const BroadcastPlan plan,
        BroadcastPlan::Make({&x.shape(), &ctx.input(1).shape(), &ctx.input(2).shape()}));
    if (plan.output() != x.shape()) {
      return InvalidArgument("the bounds must broadcast to the shape of t, ", x.shape().ToString(),
                             "; they have ", ctx.input(1).shape().ToString(), " and ",
                             ctx.input(2).shape().ToString());
    }
    Tensor* y;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, x.shape(), &y));
    if (x.num_elements() == 0) return OkStatus();
    return Run(ctx, plan, x.data<T>(), ctx.input(1).data<T>(), ctx.input(2).data<T>(),
               y->mutable_data<T>());
  }
};

// Returns the gradients: dy goes to x where x is within the bounds, and elsewhere to the bound that
// x exceeds.
Gradients ClipGradient(const GradientScope& g) {
  const Output x = g.x(0), dy = g.dy(), zero = ZerosLike(dy);
  const Output below = Less(x, g.x(1)), above = Greater(x, g.x(2));
  const Output outside = Call("LogicalOr", {below, above});
  return {Select(outside, zero, dy), SumToShapeOf(Select(below, dy, zero), g.x(1)),
          SumToShapeOf(Select(above, dy, zero), g.x(2))};
}

}  // namespace

OP(ClipByValue) {
  return {
      .doc =
          "Limits the elements of t: first to at most clip_value_max, then to at least "
          "clip_value_min.",
      .inputs = {{"t", "T"}, {"clip_value_min", "T"}, {"clip_value_max", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kReal}},
      .shape = SameShape,
      .gradient = ClipGradient,
      .examples = {{.inputs = {{{{4}, {0, 1, 2, 4}}}, {{{}, {1.5}}}, {{{}, {3}}}}}},
      .reuses = Reuse::kFirst,
  };
}
KERNEL(ClipByValue, ClipByValueKernel, REAL_TYPES);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/broadcast.h"
#include "kernels/engine/reduction_plan.h"
#include "kernels/math/forms.h"
#include "kernels/math/storage.h"
#if defined(PENSTOCK_CUDA_DEVICE)
#include "kernels/engine/cuda_launch.cuh"
#endif

namespace penstock {
namespace {

#if defined(PENSTOCK_CUDA_DEVICE)

template <class T>
__global__ void CopyBroadcastOnDevice(DeviceBroadcast plan, const T* x, T* y, int64_t n) {
  FOR_EACH_ON_DEVICE(i, n) {
    int64_t at[1];
    plan.Locate(i, at);
    y[i] = x[at[0]];
  }
}

template <class T>
Status CopyBroadcast(KernelContext& ctx, const BroadcastPlan& plan, const T* x, T* y) {
  ASSIGN_OR_RETURN(const DeviceBroadcast device, DeviceBroadcast::Make(plan));
  const int64_t n = plan.output().num_elements();
  CopyBroadcastOnDevice<<<GridFor(n), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(device, x, y,
                                                                                       n);
  return LaunchStatus();
}

#else

template <class T>
Status CopyBroadcast(KernelContext& ctx, const BroadcastPlan& plan, const T* x, T* y) {
  plan.ForEachPanel(ctx.threads(), 0.05 * sizeof(T), [&](const BroadcastPanel& p) {
    for (int64_t r = 0; r < p.rows; ++r) {
      const T* from = x + p.offset[0] + r * p.row_step[0];
      T* to = y + p.out + r * p.n;
      if (p.repeats[0]) {
        std::fill_n(to, p.n, *from);
      } else {
        std::copy_n(from, p.n, to);
      }
    }
  });
  return OkStatus();
}

#endif

class BroadcastToKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const auto dims, AxisValues(ctx.input(1), "shape"));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    if (shape == x.shape()) {
      ctx.SetOutput(0, x);
      return OkStatus();
    }
    const StatusOr<BroadcastPlan> plan = BroadcastPlan::Make({&x.shape(), &shape});
    if (!plan.ok() || plan->output() != shape) {
      return InvalidArgument("Incompatible shapes: ", x.shape().ToString(), " vs. ",
                             shape.ToString(), ": the first cannot be broadcast to the second");
    }
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &y));
    if (shape.num_elements() == 0) return OkStatus();
    return WithStorageType(x.dtype(), [&](auto element) {
      using T = decltype(element);
      return CopyBroadcast(ctx, *plan, static_cast<const T*>(x.raw_data()),
                           static_cast<T*>(y->mutable_raw_data()));
    });
  }
};

template <class>
using BroadcastToOf = BroadcastToKernel;

Status BroadcastToShape(ShapeScope& s) {
  std::vector<int64_t> dims;
  if (!s.ConstantInts(1, &dims)) {
    const PartialShape& shape = s.input(1);
    const bool rank_known = shape.known_rank() && shape.rank() == 1 && shape.dim(0) >= 0;
    s.set_output(0, rank_known && shape.dim(0) <= kMaxRank
                        ? PartialShape::UnknownOfRank(static_cast<int>(shape.dim(0)))
                        : PartialShape());
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  s.set_output(0, shape);
  return OkStatus();
}

}  // namespace

OP(BroadcastTo) {
  return {
      .doc =
          "Broadcasts the input to `shape`: repeats it along its dimensions of size 1 and "
          "along added leading dimensions.",
      .inputs = {{"input", "T"}, {"shape", "Tidx"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", TypesOf<PLAIN_TYPES, std::string, ResourceHandle, Variant>()},
                {"Tidx", kIndex, DType::kInt32}},
      .shape = BroadcastToShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        return {SumToShapeOf(g.dy(), g.x(0)), Gradient()};
      },
      .examples = {{.inputs = {{{{2, 1}}}, {{{3}, {2, 2, 3}}}}}},
  };
}
KERNEL_HOST_ARGS(("shape"), BroadcastTo, BroadcastToOf, PLAIN_TYPES);
#if !defined(PENSTOCK_CUDA_DEVICE)
KERNEL_HOST_ARGS(("shape"), BroadcastTo, BroadcastToOf, std::string, ResourceHandle, Variant);
#endif

}  // namespace penstock

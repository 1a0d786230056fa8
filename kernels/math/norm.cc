// SPDX-License-Identifier: Apache-2.0
//
// EuclideanNorm; and L2Loss, half of the squared norm of the whole tensor.
#include "core/tensor/type_lists.h"
#include "kernels/engine/reduction.h"
#include "kernels/math/reduction_op.h"

namespace penstock {
namespace {

// Squares are summed in double for every type.
struct SquareSum {
  static constexpr bool kReturnsSingleElement = false;
  template <class T>
  using Accumulator = double;
  template <class A>
  DEVICE_FN static A Identity() {
    return 0;
  }
  template <class A, class T>
  DEVICE_FN static A Add(A a, T x) {
    if constexpr (kIsComplex<T>) {
      return a + A(x.real()) * A(x.real()) + A(x.imag()) * A(x.imag());
    } else {
      return a + static_cast<A>(x) * static_cast<A>(x);
    }
  }
  template <class A>
  DEVICE_FN static A Merge(A a, A b) {
    return a + b;
  }
};

struct NormReducer : SquareSum {
  template <class T>
  DEVICE_FN static T Finish(double sum, int64_t) {
    return static_cast<T>(static_cast<Real<T>>(std::sqrt(sum)));
  }
};

struct L2LossReducer : SquareSum {
  template <class T>
  DEVICE_FN static T Finish(double sum, int64_t) {
    return static_cast<T>(sum / 2);
  }
};

template <class T>
class L2LossKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    static constexpr ReductionLoop kLoop = ReductionLoopOf<L2LossReducer, T>();
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const ReductionPlan plan,
                     ReductionPlan::Make(Shape{x.num_elements()}, {0}, false));
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, plan.output, &y));
    if (kLoop.launch != nullptr) {
      return kLoop.launch(ctx, plan, x.raw_data(), y->mutable_raw_data());
    }
    Reduce(ctx.threads(), kLoop, plan, x.raw_data(), y->mutable_raw_data());
    return OkStatus();
  }
};

}  // namespace

OP(EuclideanNorm) {
  return ReductionOp("The Euclidean norm along axes.", kNumber,
                     [](const GradientScope& g) -> Gradients {
                       return {g.x() * WithKeptDims(g, g.dy() / g.y()), Gradient()};
                     });
}
KERNEL_HOST_ARGS(("reduction_indices"), EuclideanNorm, Reduction<NormReducer>::Kernel,
                 NUMBER_TYPES);

OP(L2Loss) {
  return {
      .doc = "Half of the sum of the squares of all elements.",
      .inputs = {{"t", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .shape = ScalarShape,
      .gradient = [](const GradientScope& g) -> Gradients { return {g.x() * g.dy()}; },
  };
}
KERNEL(L2Loss, L2LossKernel, FLOATING_TYPES);

}  // namespace penstock

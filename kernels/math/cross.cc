// SPDX-License-Identifier: Apache-2.0
//
// Cross: the cross product of vectors of three elements.
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/functor.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

// Returns a * b - c * d; integers wrap around.
template <class L>
L Difference(L a, L b, L c, L d) {
  if constexpr (std::is_integral_v<L>) {
    using W = Wrapping<L>;
    return static_cast<L>(W(a) * W(b) - W(c) * W(d));
  } else {
    return a * b - c * d;
  }
}

template <class T>
class CrossKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (!(a.shape() == b.shape())) {
      return InvalidArgument("both inputs must be of same shape: ", a.shape().ToString(), " vs. ",
                             b.shape().ToString());
    }
    if (a.rank() < 1 || a.dim(a.rank() - 1) != 3) {
      return FailedPrecondition(
          "Cross-products are only defined for 3-element vectors; the inputs have shape ",
          a.shape().ToString());
    }
    Tensor* product;
    RETURN_IF_ERROR(ctx.Allocate(0, a.shape(), &product));
    using L = LoopType<T>;
    const T *x = a.data<T>(), *y = b.data<T>();
    T* z = product->mutable_data<T>();
    ctx.threads().ParallelFor(a.num_elements() / 3, 4, [=](int64_t begin, int64_t end) {
      for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
        const L x0 = static_cast<L>(x[i]), x1 = static_cast<L>(x[i + 1]),
                x2 = static_cast<L>(x[i + 2]);
        const L y0 = static_cast<L>(y[i]), y1 = static_cast<L>(y[i + 1]),
                y2 = static_cast<L>(y[i + 2]);
        z[i] = static_cast<T>(Difference(x1, y2, x2, y1));
        z[i + 1] = static_cast<T>(Difference(x2, y0, x0, y2));
        z[i + 2] = static_cast<T>(Difference(x0, y1, x1, y0));
      }
    });
    return OkStatus();
  }
};

Status CrossShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape a, s.WithRankAtLeast(0, 1));
  ASSIGN_OR_RETURN(const PartialShape b, s.WithRankAtLeast(1, 1));
  ASSIGN_OR_RETURN(a, a.Merge(b));
  if (a.known_rank()) {
    const int64_t last = a.dim(a.rank() - 1);
    if (last >= 0 && last != 3) {
      return InvalidArgument(
          "Cross-products are only defined for 3-element vectors; the inputs "
          "have shape ",
          a.ToString());
    }
    a.set_dim(a.rank() - 1, 3);
  }
  s.set_output(0, std::move(a));
  return OkStatus();
}

}  // namespace

OP(Cross) {
  return {
      .doc = "The cross products of vectors of length 3, which are in the last dimension.",
      .inputs = {{"a", "T"}, {"b", "T"}},
      .outputs = {{"product", "T"}},
      .types = {{"T", kReal}},
      .shape = CrossShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        return {Call("Cross", {g.x(1), g.dy()}), Call("Cross", {g.dy(), g.x(0)})};
      },
      .examples = {{.inputs = {{{{2, 3}}}, {{{2, 3}}}}}},
  };
}
KERNEL(Cross, CrossKernel, REAL_TYPES);

}  // namespace penstock

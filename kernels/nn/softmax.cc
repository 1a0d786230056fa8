// SPDX-License-Identifier: Apache-2.0
//
// Softmax and LogSoftmax over the last dimension.
#include "kernels/nn/softmax.h"

#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

template <class T, bool kLog>
class SoftmaxRows : public Kernel {
  using F = SoftmaxFloat<T>;

  Status Compute(KernelContext& ctx) final {
    const Shape& shape = ctx.input(0).shape();
    if (shape.rank() < 1) return InvalidArgument("logits must have at least 1 dimension");
    Tensor* out;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &out));
    if (shape.num_elements() == 0) return OkStatus();
    const int64_t n = shape.dim(shape.rank() - 1);
    const T* x = ctx.input(0).template data<T>();
    T* y = out->template mutable_data<T>();
    ctx.threads().ParallelFor(shape.num_elements() / n, kSoftmaxNanos * n,
                              [&](int64_t begin, int64_t end) {
                                std::vector<F> row(n);
                                for (int64_t r = begin; r < end; ++r)
                                  Row(x + r * n, y + r * n, n, row.data());
                              });
    return OkStatus();
  }

  static void Row(const T* x, T* y, int64_t n, F* row) {
    if constexpr (kLog) {
      const F log_sum = std::log(ShiftAndExponentiate<T>(x, n, row, nullptr));
      for (int64_t i = 0; i < n; ++i) y[i] = T(row[i] - log_sum);
    } else {
      const F scale = F(1) / ShiftAndExponentiate<T>(x, n, nullptr, row);
      for (int64_t i = 0; i < n; ++i) y[i] = T(row[i] * scale);
    }
  }
};

template <class T>
class SoftmaxKernel final : public SoftmaxRows<T, false> {};
template <class T>
class LogSoftmaxKernel final : public SoftmaxRows<T, true> {};

Status SoftmaxShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape logits, s.WithRankAtLeast(0, 1));
  s.set_output(0, logits);
  return OkStatus();
}

}  // namespace

OP(Softmax) {
  return {
      .doc = "exp(x) / sum(exp(x)) along the last dimension.",
      .inputs = {{"logits", "T"}},
      .outputs = {{"softmax", "T"}},
      .types = {{"T", kFloating}},
      .shape = SoftmaxShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        const Output last = g.Const<int32_t>(-1);
        return {(g.dy() - Sum(g.dy() * g.y(), last, true)) * g.y()};
      },
      .reuses = Reuse::kFirst,
  };
}
KERNEL(Softmax, SoftmaxKernel, half, bfloat16, float, double);

OP(LogSoftmax) {
  return {
      .doc = "log(softmax(x)) along the last dimension, without overflow.",
      .inputs = {{"logits", "T"}},
      .outputs = {{"logsoftmax", "T"}},
      .types = {{"T", kFloating}},
      .shape = SoftmaxShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        const Output last = g.Const<int32_t>(-1);
        return {g.dy() - Sum(g.dy(), last, true) * Exp(g.y())};
      },
      .reuses = Reuse::kFirst,
  };
}
KERNEL(LogSoftmax, LogSoftmaxKernel, half, bfloat16, float, double);

}  // namespace penstock

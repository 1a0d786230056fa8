// SPDX-License-Identifier: Apache-2.0
//
// LeakyRelu and its gradient, activations whose inner loop depends on an attribute.
#include <vector>

#include "core/op/block_kernel.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

template <class T>
class LeakyReluKernel final : public Kernel, public BlockKernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("alpha", &alpha_); }
  Status Compute(KernelContext& ctx) override {
    Tensor* out;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, ctx.input(0).shape(), &out));
    const T* x = ctx.input(0).template data<T>();
    T* y = out->template mutable_data<T>();
    ctx.threads().ParallelFor(out->num_elements(), 0.5, [&](int64_t begin, int64_t end) {
      Run(x + begin, y + begin, end - begin);
    });
    return OkStatus();
  }
  bool RunsInBlocks() const override { return true; }
  double BlockNanos() const override { return 0.2; }
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override {
    Run(static_cast<const T*>(inputs[0].data), static_cast<T*>(output), n);
  }

 private:
  void Run(const T* x, T* y, int64_t n) const {
    const T alpha(alpha_);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < T(0.f) ? x[i] * alpha : x[i];
  }
  float alpha_ = 0;
};

template <class T>
class LeakyReluGradKernel final : public Kernel, public BlockKernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("alpha", &alpha_); }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).shape() != ctx.input(1).shape()) {
      return InvalidArgument("gradients and features must have the same shape, got ",
                             ctx.input(0).shape().ToString(), " and ",
                             ctx.input(1).shape().ToString());
    }
    Tensor* out;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, ctx.input(0).shape(), &out));
    const T* dy = ctx.input(0).template data<T>();
    const T* x = ctx.input(1).template data<T>();
    T* dx = out->template mutable_data<T>();
    ctx.threads().ParallelFor(out->num_elements(), 0.5, [&](int64_t begin, int64_t end) {
      Run(dy + begin, x + begin, dx + begin, end - begin);
    });
    return OkStatus();
  }
  bool RunsInBlocks() const override { return true; }
  bool AcceptsShapes(const Shape&, absl::Span<const Shape* const> inputs) const override {
    return *inputs[0] == *inputs[1];
  }
  double BlockNanos() const override { return 0.2; }
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override {
    Run(static_cast<const T*>(inputs[0].data), static_cast<const T*>(inputs[1].data),
        static_cast<T*>(output), n);
  }

 private:
  void Run(const T* dy, const T* x, T* dx, int64_t n) const {
    const T alpha(alpha_);
    for (int64_t i = 0; i < n; ++i) dx[i] = x[i] > T(0.f) ? dy[i] : dy[i] * alpha;
  }
  float alpha_ = 0;
};

}  // namespace

OP(LeakyRelu) {
  return {
      .doc = "x where x >= 0, else alpha * x.",
      .inputs = {{"features", "T"}},
      .outputs = {{"activations", "T"}},
      .types = {{"T", kFloating, DType::kFloat}},
      .attrs = {{"alpha", 0.2f}},
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("LeakyReluGrad", {g.dy(), g.x()}, {{"alpha", g.attr<float>("alpha")}})};
      },
      .reuses = Reuse::kFirst,
  };
}
KERNEL(LeakyRelu, LeakyReluKernel, half, bfloat16, float, double);

OP(LeakyReluGrad) {
  return {
      .doc =
          "The gradient of LeakyRelu: `gradients` are those of its output, `features` its input.",
      .inputs = {{"gradients", "T"}, {"features", "T"}},
      .outputs = {{"backprops", "T"}},
      .types = {{"T", kFloating, DType::kFloat}},
      .attrs = {{"alpha", 0.2f}},
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("LeakyReluGrad", {g.dy(), g.x(1)}, {{"alpha", g.attr<float>("alpha")}}),
                Gradient()};
      },
      .reuses = Reuse::kFirst,
  };
}
KERNEL(LeakyReluGrad, LeakyReluGradKernel, half, bfloat16, float, double);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of softmax(features) and labels, given as distributions or as class indices. The
// gradient is computed in the same pass over the rows.
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/softmax.h"

namespace penstock {
namespace {

// A [rows, classes] operand. A dimension of size 1 broadcasts against the other operand.
struct Rows {
  int64_t row_step = 0, class_step = 0;
  Rows(const Shape& shape, int64_t rows, int64_t classes)
      : row_step(shape.dim(0) == 1 && rows != 1 ? 0 : shape.dim(1)),
        class_step(shape.dim(1) == 1 && classes != 1 ? 0 : 1) {}
};

template <class T>
class SoftmaxCrossEntropy final : public Kernel {
  using F = SoftmaxFloat<T>;

  Status Compute(KernelContext& ctx) override {
    const Shape& a = ctx.input(0).shape();
    const Shape& b = ctx.input(1).shape();
    const auto fits = [&](int i) { return a.dim(i) == b.dim(i) || a.dim(i) == 1 || b.dim(i) == 1; };
    if (a.rank() != 2 || b.rank() != 2 || !fits(0) || !fits(1)) {
      return InvalidArgument("logits and labels must be broadcastable: logits_size=", a.ToString(),
                             " labels_size=", b.ToString(), "; both must be matrices");
    }
    const auto joint = [&](int i) { return a.dim(i) == 1 ? b.dim(i) : a.dim(i); };
    const int64_t rows = joint(0), classes = joint(1);
    Tensor *loss, *backprop;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({rows}), &loss));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape({rows, classes}), &backprop));
    T* l = loss->template mutable_data<T>();
    T* d = backprop->template mutable_data<T>();
    if (classes == 0) {
      std::fill_n(l, rows, T(0.f));
      return OkStatus();
    }
    const Rows x_rows(a, rows, classes), p_rows(b, rows, classes);
    const T* x = ctx.input(0).template data<T>();
    const T* p = ctx.input(1).template data<T>();
    ctx.threads().ParallelFor(rows, 2 * kSoftmaxNanos * classes, [&](int64_t begin, int64_t end) {
      std::vector<T> logits(classes);
      std::vector<F> shifted(classes), exps(classes);
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t c = 0; c < classes; ++c) {
          logits[c] = x[r * x_rows.row_step + c * x_rows.class_step];
        }
        const F sum = ShiftAndExponentiate<T>(logits.data(), classes, shifted.data(), exps.data());
        const F log_sum = std::log(sum);
        F total = 0;
        for (int64_t c = 0; c < classes; ++c) {
          const F label(p[r * p_rows.row_step + c * p_rows.class_step]);
          // Skips labels of zero: they add nothing to the loss, even if the logit is infinite.
          if (label != F(0)) total += label * (log_sum - shifted[c]);
          d[r * classes + c] = T(exps[c] / sum - label);
        }
        l[r] = T(total);
      }
    });
    return OkStatus();
  }
};

template <class T, class Index>
Status SparseRows(KernelContext& ctx) {
  using F = SoftmaxFloat<T>;
  const Tensor& features = ctx.input(0);
  const Tensor& labels = ctx.input(1);
  if (features.rank() != 2) {
    return InvalidArgument("logits must be a matrix, have shape ", features.shape().ToString());
  }
  const int64_t rows = features.dim(0), classes = features.dim(1);
  if (labels.rank() != 1 || labels.dim(0) != rows) {
    return InvalidArgument(
        "logits and labels must have the same first dimension, got logits shape ",
        features.shape().ToString(), " and labels shape ", labels.shape().ToString(),
        "; labels must be a vector");
  }
  const Index* label = labels.data<Index>();
  for (int64_t r = 0; r < rows; ++r) {
    if (label[r] < 0 || label[r] >= classes) {
      return InvalidArgument("Received a label value of ", label[r],
                             " which is outside the valid range of [0, ", classes, "): labels[", r,
                             "]");
    }
  }
  Tensor *loss, *backprop;
  RETURN_IF_ERROR(ctx.Allocate(0, Shape({rows}), &loss));
  RETURN_IF_ERROR(ctx.Allocate(1, features.shape(), &backprop));
  const T* x = features.data<T>();
  T* l = loss->mutable_data<T>();
  T* d = backprop->mutable_data<T>();
  ctx.threads().ParallelFor(rows, 2 * kSoftmaxNanos * classes, [&](int64_t begin, int64_t end) {
    std::vector<F> shifted(classes), exps(classes);
    for (int64_t r = begin; r < end; ++r) {
      const F sum = ShiftAndExponentiate<T>(x + r * classes, classes, shifted.data(), exps.data());
      const F scale = F(1) / sum;
      for (int64_t c = 0; c < classes; ++c) d[r * classes + c] = T(exps[c] * scale);
      const int64_t k = label[r];
      d[r * classes + k] = T(exps[k] * scale - F(1));
      l[r] = T(std::log(sum) - shifted[k]);
    }
  });
  return OkStatus();
}

template <class T>
class SparseSoftmaxCrossEntropy final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    return ctx.input(1).dtype() == DType::kInt64 ? SparseRows<T, int64_t>(ctx)
                                                 : SparseRows<T, int32_t>(ctx);
  }
};

Status DenseLossShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape features, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const PartialShape labels, s.WithRank(1, 2));
  ASSIGN_OR_RETURN(const PartialShape both, Broadcast(features, labels));
  s.set_output(0, PartialShape({both.known_rank() ? both.dim(0) : PartialShape::kUnknown}));
  s.set_output(1, both);
  return OkStatus();
}

Status SparseLossShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape features, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const PartialShape labels, s.WithRank(1, 1));
  const int64_t rows = features.known_rank() ? features.dim(0) : PartialShape::kUnknown;
  ASSIGN_OR_RETURN(const PartialShape loss, labels.Merge(PartialShape({rows})));
  s.set_output(0, loss);
  s.set_output(1, features);
  return OkStatus();
}

Output PerRow(const GradientScope& g) { return ExpandDims(g.dy(0), g.Const<int32_t>(-1)); }

// Returns the gradient of the features. The loss contributes dy(0) * backprop. The output backprop
// (second order) contributes the gradient of softmax for v = dy(1): (v - sum(v * softmax)) *
// softmax.
Output FeaturesGradient(const GradientScope& g) {
  Output total = PerRow(g) * g.y(1);
  if (g.has_dy(1)) {
    const Output softmax = Call("Softmax", {g.x(0)});
    const Output v = g.dy(1);
    total = total + (v - Sum(v * softmax, g.Const<int32_t>(-1), true)) * softmax;
  }
  return total;
}

}  // namespace

OP(SoftmaxCrossEntropyWithLogits) {
  return {
      .doc =
          "loss = -sum(labels * log(softmax(features))) for each row; backprop is its gradient "
          "for `features`.",
      .inputs = {{"features", "T"}, {"labels", "T"}},
      .outputs = {{"loss", "T"}, {"backprop", "T"}},
      .types = {{"T", kFloating}},
      .shape = DenseLossShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        Output for_labels = PerRow(g) * -Call("LogSoftmax", {g.x(0)});
        // The gradient of the labels that flows through output 1, backprop = softmax - labels.
        if (g.has_dy(1)) for_labels = for_labels - g.dy(1);
        return {SumToShapeOf(FeaturesGradient(g), g.x(0)), SumToShapeOf(for_labels, g.x(1))};
      },
      .examples = {{.inputs = {{{{2, 3}}}, {{{2, 3}, {0.2, 0.3, 0.5, 0, 1, 0}}}}}},
  };
}
KERNEL(SoftmaxCrossEntropyWithLogits, SoftmaxCrossEntropy, half, bfloat16, float, double);

OP(SparseSoftmaxCrossEntropyWithLogits) {
  return {
      .doc =
          "The same as SoftmaxCrossEntropyWithLogits, but the label of each row is the "
          "number of its class.",
      .inputs = {{"features", "T"}, {"labels", "Tlabels"}},
      .outputs = {{"loss", "T"}, {"backprop", "T"}},
      .types = {{"T", kFloating}, {"Tlabels", kIndex, DType::kInt64}},
      .shape = SparseLossShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {FeaturesGradient(g), Gradient()};
      },
      .examples = {{.inputs = {{{{2, 3}}}, {{{2}, {2, 0}}}}}},
  };
}
KERNEL(SparseSoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropy, half, bfloat16, float,
       double);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// InTopK (k an attribute), InTopKV2 (k an input): tests whether each target is among the k largest
// predictions of its row.
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

// Returns whether fewer than k predictions of the row are larger than that of the target. Returns
// false if the target is out of range, or a prediction is not finite.
bool InTop(absl::Span<const float> row, int64_t target, int64_t k) {
  if (target < 0 || target >= static_cast<int64_t>(row.size())) return false;
  if (!std::isfinite(row[target])) return false;
  int64_t larger = 0;
  for (const float prediction : row) {
    if (!std::isfinite(prediction)) return false;
    larger += prediction > row[target];
  }
  return larger < k;
}

template <class Index>
Status FindTargets(KernelContext& ctx, int64_t k) {
  const Tensor &predictions = ctx.input(0), &targets = ctx.input(1);
  if (predictions.rank() != 2) return InvalidArgument("predictions must be 2-dimensional");
  if (targets.rank() != 1) return InvalidArgument("targets must be 1-dimensional");
  const int64_t rows = predictions.dim(0), columns = predictions.dim(1);
  if (targets.dim(0) != rows) {
    return InvalidArgument("First dimension of predictions ", rows,
                           " must match length of targets ", targets.dim(0));
  }
  Tensor* precision;
  RETURN_IF_ERROR(ctx.Allocate(0, Shape({rows}), &precision));
  bool* out = precision->mutable_data<bool>();
  ctx.threads().ParallelFor(rows, 5 + columns * 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const absl::Span<const float> row(predictions.data<float>() + i * columns, columns);
      out[i] = InTop(row, static_cast<int64_t>(targets.data<Index>()[i]), k);
    }
  });
  return OkStatus();
}

template <class Index>
class InTopKKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("k", &k_); }
  Status Compute(KernelContext& ctx) override { return FindTargets<Index>(ctx, k_); }

 private:
  int64_t k_ = 0;
};

template <class Index>
class InTopKV2Kernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t k, IntScalar(ctx.input(2), "k"));
    return FindTargets<Index>(ctx, k);
  }
};

Status InTopKShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape predictions, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const PartialShape targets, s.WithRank(1, 1));
  ASSIGN_OR_RETURN(PartialShape rows, targets.Merge(PartialShape({predictions.dim(0)})));
  s.set_output(0, std::move(rows));
  return OkStatus();
}

OP(InTopK) {
  return {
      .doc =
          "Returns whether the prediction of class targets[i] is among the k largest of "
          "predictions[i].",
      .inputs = {{"predictions", "float"}, {"targets", "T"}},
      .outputs = {{"precision", "bool"}},
      .types = {{"T", kIndex, DType::kInt32}},
      .attrs = {{"k", Ints{}}},
      .shape = InTopKShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 4}}}, {{{2}, {1, 3}}}}, .attrs = {{"k", 2}}}},
  };
}

OP(InTopKV2) {
  return {
      .doc =
          "Returns whether the prediction of class targets[i] is among the k largest of "
          "predictions[i].",
      .inputs = {{"predictions", "float"}, {"targets", "T"}, {"k", "T"}},
      .outputs = {{"precision", "bool"}},
      .types = {{"T", kIndex, DType::kInt32}},
      .shape = InTopKShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 4}}}, {{{2}, {1, 3}}}, {{.values = {2}}}}}},
  };
}
KERNEL(InTopK, InTopKKernel, int32_t, int64_t);
KERNEL(InTopKV2, InTopKV2Kernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/linalg/einsum_kernel.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

bool Contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// Returns the strides along `labels` in a dense tensor of dimensions `dims` with the labels `own`.
// A repeated label means the diagonal; a label that is not in `own` has stride 0.
Dims StridesAlong(const Labels& labels, const Labels& own, const Dims& dims) {
  const Dims dense = DenseStrides(dims);
  Dims strides;
  for (const int label : labels) {
    strides.push_back(0);
    for (size_t d = 0; d < own.size(); ++d) strides.back() += own[d] == label ? dense[d] : 0;
  }
  return strides;
}

// Returns each label that is in `other` if and only if `in_other`, and in `output` if and only if
// `in_output`.
Labels Select(const Labels& labels, const Labels& other, bool in_other, const Labels& output,
              bool in_output) {
  Labels chosen;
  for (const int label : labels) {
    if (Contains(other, label) == in_other && Contains(output, label) == in_output) {
      chosen.push_back(label);
    }
  }
  return chosen;
}

// Returns each label of the output that `x` has, once, in the output's order.
Labels InOrderOf(const Labels& output, const Labels& x) {
  Labels ordered;
  for (const int label : output) {
    if (Contains(x, label) && !Contains(ordered, label)) ordered.push_back(label);
  }
  return ordered;
}

Labels Joined(const Labels& a, const Labels& b, const Labels& c) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

int64_t CountOf(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Copies `value`, labelled `own`, into `to`, a dense tensor labelled `wanted`. Labels may repeat in
// `value` or in `to`, but not in both. Leaves elements of `to` unchanged if no element of `value`
// corresponds to them.
void Rearrange(const EinsumLabels& all, const Tensor& value, const Labels& own,
               const Labels& wanted, Tensor* to, Scheduler& threads) {
  Labels walked;
  for (const int label : own) {
    if (!Contains(walked, label)) walked.push_back(label);
  }
  const Dims from_strides = StridesAlong(walked, own, all.SizesOf(own));
  const Dims to_strides = StridesAlong(walked, wanted, all.SizesOf(wanted));
  StridedCopy copy;
  for (size_t i = 0; i < walked.size(); ++i) {
    copy.Add(all.sizes.at(walked[i]), from_strides[i], to_strides[i]);
  }
  CopyStrided(value.dtype(), copy, value.raw_data(), to->mutable_raw_data(), threads);
}

StatusOr<Tensor> Arranged(KernelContext& ctx, const EinsumLabels& all, const Tensor& value,
                          const Labels& own, const Labels& wanted) {
  if (own == wanted) return value;
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(all.SizesOf(wanted)));
  ASSIGN_OR_RETURN(Tensor arranged, ctx.Temporary(value.dtype(), shape));
  Rearrange(all, value, own, wanted, &arranged, ctx.threads());
  return arranged;
}

}  // namespace

Status EinsumKernel::Init(const KernelInit& node) {
  std::string equation;
  RETURN_IF_ERROR(node.Attr("equation", &equation));
  const int inputs = static_cast<int>(node.input_types.size());
  ASSIGN_OR_RETURN(equation_, EinsumEquation::Parse(equation, inputs));
  return OkStatus();
}

// Replaces repeated labels by the diagonal. Removes dimensions of size 1, because an operand
// broadcasts along labels that it does not have.
StatusOr<EinsumKernel::Operand> EinsumKernel::WithoutRepeats(KernelContext& ctx,
                                                             const Tensor& value,
                                                             const Labels& labels,
                                                             const EinsumLabels& all) const {
  Labels own, unique;
  Dims dims;
  for (size_t d = 0; d < labels.size(); ++d) {
    if (value.dim(static_cast<int>(d)) == 1) continue;
    own.push_back(labels[d]);
    dims.push_back(value.dim(static_cast<int>(d)));
    if (!Contains(unique, labels[d])) unique.push_back(labels[d]);
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  ASSIGN_OR_RETURN(Tensor once, Arranged(ctx, all, value.Reshaped(shape), own, unique));
  return Operand{.value = std::move(once), .labels = std::move(unique)};
}

StatusOr<EinsumKernel::Operand> EinsumKernel::SumOverAxes(KernelContext& ctx, Operand x,
                                                          const std::vector<int64_t>& axes) const {
  if (axes.empty()) return x;
  ASSIGN_OR_RETURN(const ReductionPlan plan,
                   ReductionPlan::Make(x.value.shape(), axes, /*keep_dims=*/false));
  ASSIGN_OR_RETURN(Tensor sums, ctx.Temporary(x.value.dtype(), plan.output));
  Reduce(ctx.threads(), sum_, plan, x.value.raw_data(), sums.mutable_raw_data());
  x.value = std::move(sums);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    x.labels.erase(x.labels.begin() + *axis);
  }
  return x;
}

// Returns input i, summed over the labels that occur only in it.
StatusOr<EinsumKernel::Operand> EinsumKernel::Input(KernelContext& ctx, const EinsumLabels& all,
                                                    int i) const {
  ASSIGN_OR_RETURN(Operand x, WithoutRepeats(ctx, ctx.input(i), all.inputs[i], all));
  std::vector<int64_t> alone;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    const bool shared = ctx.num_inputs() == 2 && Contains(all.inputs[1 - i], x.labels[d]);
    if (!shared && !Contains(all.output, x.labels[d])) alone.push_back(static_cast<int64_t>(d));
  }
  return SumOverAxes(ctx, std::move(x), alone);
}

StatusOr<EinsumKernel::Operand> EinsumKernel::MultiplyOperands(KernelContext& ctx, const Operand& a,
                                                               const Operand& b,
                                                               const EinsumLabels& all) const {
  const Labels summed = Select(a.labels, b.labels, true, all.output, false);
  const Labels batch = InOrderOf(all.output, Select(a.labels, b.labels, true, all.output, true));
  const Labels rows = InOrderOf(all.output, Select(a.labels, b.labels, false, all.output, true));
  const Labels cols = InOrderOf(all.output, Select(b.labels, a.labels, false, all.output, true));
  Product product{.m = CountOf(all.SizesOf(rows)),
                  .n = CountOf(all.SizesOf(cols)),
                  .k = CountOf(all.SizesOf(summed))};
  if (std::max({product.m, product.n, product.k}) > std::numeric_limits<int32_t>::max()) {
    return Unimplemented("matrix products with a dimension above 2^31 - 1");
  }
  const auto arrange = [&](const Operand& x, const Labels& plain, const Labels& turned,
                           Side* side) {
    if (x.labels == turned && plain != turned) *side = Side::kTransposed;
    return Arranged(ctx, all, x.value, x.labels, *side == Side::kPlain ? plain : turned);
  };
  ASSIGN_OR_RETURN(const Tensor left, arrange(a, Joined(batch, rows, summed),
                                              Joined(batch, summed, rows), &product.a));
  ASSIGN_OR_RETURN(const Tensor right, arrange(b, Joined(batch, summed, cols),
                                               Joined(batch, cols, summed), &product.b));
  Operand y{.labels = Joined(batch, rows, cols)};
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(all.SizesOf(y.labels)));
  ASSIGN_OR_RETURN(y.value, ctx.Temporary(left.dtype(), shape));
  if (shape.num_elements() == 0) return y;
  MatrixPairs pairs;
  pairs.a.resize(CountOf(all.SizesOf(batch)));
  std::iota(pairs.a.begin(), pairs.a.end(), 0);
  pairs.b = pairs.a;
  RETURN_IF_ERROR(multiply_(ctx, product, pairs, left, right, &y.value));
  return y;
}

Status EinsumKernel::Compute(KernelContext& ctx) {
  std::vector<PartialShape> shapes;
  for (int i = 0; i < ctx.num_inputs(); ++i) shapes.push_back(ctx.input(i).shape());
  ASSIGN_OR_RETURN(const EinsumLabels all, EinsumLabels::Of(equation_, shapes));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(all.SizesOf(all.output)));
  ASSIGN_OR_RETURN(Operand y, Input(ctx, all, 0));
  if (ctx.num_inputs() == 2) {
    ASSIGN_OR_RETURN(const Operand b, Input(ctx, all, 1));
    // Makes the operand whose dimensions come first in the output the left operand of the product.
    const Labels order = InOrderOf(all.output, Joined(y.labels, b.labels, {}));
    const auto alone = std::find_if(order.begin(), order.end(), [&](int label) {
      return Contains(y.labels, label) != Contains(b.labels, label);
    });
    const bool turn = alone != order.end() && Contains(b.labels, *alone);
    ASSIGN_OR_RETURN(y, turn ? MultiplyOperands(ctx, b, y, all) : MultiplyOperands(ctx, y, b, all));
  }
  Labels wanted;
  for (const int label : all.output) {
    if (all.sizes.at(label) != 1) wanted.push_back(label);
  }
  if (y.labels == wanted) {
    ctx.SetOutput(0, y.value.Reshaped(shape));
    return OkStatus();
  }
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
  if (y.value.num_elements() < shape.num_elements()) Zero(*output, ctx.threads());
  Rearrange(all, y.value, y.labels, wanted, output, ctx.threads());
  return OkStatus();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "client/losses/losses.h"

#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output SumOfAll(Output x) {
  const Output flat = Reshape(x, Constant(*x.sink, Tensor::Vector<int32_t>({-1})));
  return Sum(flat, Constant(*x.sink, Tensor::Scalar<int32_t>(0)));
}

Output Reduce(Output losses, const LossOptions& options) {
  const bool weighted = options.weights.valid();
  if (weighted) losses = losses * options.weights;
  if (options.reduction == Reduction::kNone || !losses.valid()) return losses;
  const Output sum = SumOfAll(losses);
  if (options.reduction == Reduction::kSum) return sum;
  if (!weighted) return Call("DivNoNan", {sum, Cast(SizeOf(losses), losses.dtype())});
  // A weight that is broadcast counts once for each loss that it multiplies.
  const Output all = BroadcastTo(options.weights, ShapeOf(losses));
  const Output counted = Cast(Call("NotEqual", {all, ZerosLike(all)}), losses.dtype());
  return Call("DivNoNan", {sum, SumOfAll(counted)});
}

}  // namespace

Output SigmoidCrossEntropy(const LocatedOutput& located, Output logits,
                           const LossOptions& options) {
  const Output labels = located.output();
  const CallerLine source(located);
  return Reduce(Call("Softplus", {logits}) - logits * labels, options);
}

Output SoftmaxCrossEntropy(const LocatedOutput& located, Output logits,
                           const LossOptions& options) {
  const Output labels = located.output();
  const CallerLine source(located);
  const char* const op = IsFloating(labels.dtype()) ? "SoftmaxCrossEntropyWithLogits"
                                                    : "SparseSoftmaxCrossEntropyWithLogits";
  return Reduce(Call(op, {logits, labels}), options);
}

Output Hinge(const LocatedOutput& located, Output logits, const LossOptions& options) {
  const Output labels = located.output();
  const CallerLine source(located);
  const Output margin = 1 - (labels * 2 - 1) * logits;
  return Reduce(Call("Relu", {margin}), options);
}

Output Huber(const LocatedOutput& located, Output predictions, double delta,
             const LossOptions& options) {
  const Output labels = located.output();
  const CallerLine source(located);
  const Output error = Abs(predictions - labels);
  const Output near = Minimum(error, ConstantLike(error, delta));
  return Reduce(Square(near) * 0.5 + (error - near) * delta, options);
}

Output SquaredError(const LocatedOutput& located, Output predictions, const LossOptions& options) {
  const Output labels = located.output();
  const CallerLine source(located);
  return Reduce(Square(predictions - labels), options);
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
#include "client/losses/losses.h"

#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output SumOfAll(Output x) {
  const Output flat = Reshape(x, Constant(*x.sink, Tensor::Vector<int32_t>({-1})));
  return Sum(flat, Constant(*x.sink, Tensor::Scalar<int32_t>(0)));
}

Output Reduced(Output losses, const LossOptions& options) {
  const bool weighted = options.weights.valid();
  if (weighted) losses = losses * options.weights;
  if (options.reduction == Reduction::kNone || !losses.valid()) return losses;
  const Output sum = SumOfAll(losses);
  if (options.reduction == Reduction::kSum) return sum;
  if (!weighted) return Call("DivNoNan", {sum, Cast(SizeOf(losses), losses.dtype())});
  // A broadcast weight counts once for each loss that it multiplies.
  const Output all = BroadcastTo(options.weights, ShapeOf(losses));
  const Output counted = Cast(Call("NotEqual", {all, ZerosLike(all)}), losses.dtype());
  return Call("DivNoNan", {sum, SumOfAll(counted)});
}

}  // namespace

Output SigmoidCrossEntropy(Output labels, Output logits, const LossOptions& options) {
  return Reduced(Call("Softplus", {logits}) - logits * labels, options);
}

Output SoftmaxCrossEntropy(Output labels, Output logits, const LossOptions& options) {
  const char* const op = IsFloating(labels.dtype()) ? "SoftmaxCrossEntropyWithLogits"
                                                    : "SparseSoftmaxCrossEntropyWithLogits";
  return Reduced(Call(op, {logits, labels}), options);
}

Output Hinge(Output labels, Output logits, const LossOptions& options) {
  const Output margin = 1 - (labels * 2 - 1) * logits;
  return Reduced(Call("Relu", {margin}), options);
}

Output Huber(Output labels, Output predictions, double delta, const LossOptions& options) {
  const Output error = Abs(predictions - labels);
  const Output near = Minimum(error, ConstantLike(error, delta));
  return Reduced(Square(near) * 0.5 + (error - near) * delta, options);
}

Output SquaredError(Output labels, Output predictions, const LossOptions& options) {
  return Reduced(Square(predictions - labels), options);
}

}  // namespace penstock::client

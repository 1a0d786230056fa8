// SPDX-License-Identifier: Apache-2.0
//
// Losses: how far predictions are from labels, as a number to minimise.
//
//   Output loss = SigmoidCrossEntropy(clicked, logits);
//
// Labels, predictions and weights are of one floating type, unless said otherwise; the elements are
// the examples. Formulas and reductions are those of TensorFlow's tf.losses.
#pragma once

#include "core/op/output.h"

namespace penstock::client {

enum class Reduction {
  kNone,  // one loss for each element
  kSum,   // sum(weight * loss)
  kMean,  // sum(weight * loss) / how many weights are not 0; 0 if all are
};

struct LossOptions {
  // One for each element, or of a shape that is broadcast to theirs; 1 if not given.
  Output weights = {};
  Reduction reduction = Reduction::kMean;
};

// -log of the probability of the label: labels in [0, 1], of the shape of `logits`.
Output SigmoidCrossEntropy(Output labels, Output logits, const LossOptions& options = {});
// The same over classes, the last dimension. One loss for each row of [batch, classes]. `labels`
// are probabilities, or class numbers (int32 or int64, of shape [batch]).
Output SoftmaxCrossEntropy(Output labels, Output logits, const LossOptions& options = {});
// max(0, 1 - (2 * label - 1) * logit), labels 0 or 1.
Output Hinge(Output labels, Output logits, const LossOptions& options = {});
// e^2 / 2 for |e| <= delta, delta * (|e| - delta / 2) beyond: outliers pull with limited force.
Output Huber(Output labels, Output predictions, double delta = 1, const LossOptions& options = {});
// e^2
Output SquaredError(Output labels, Output predictions, const LossOptions& options = {});

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// Losses: functions that measure the distance of predictions from labels.
//
//   Output loss = SigmoidCrossEntropy(clicked, logits);
//
// Unless documented otherwise, labels, predictions and weights have the same floating-point type,
// and each element is one example. Formulas and reductions are those of TensorFlow's tf.losses.
#pragma once

#include "core/op/output.h"

namespace penstock::client {

enum class Reduction {
  kNone,  // returns one loss for each element
  kSum,   // sum(weight * loss)
  kMean,  // sum(weight * loss) / number of weights != 0; 0 if all weights are 0
};

struct LossOptions {
  // The weights of the losses, of any shape that can be broadcast to the shape of the losses. Not
  // given: all weights are 1.
  Output weights = {};
  Reduction reduction = Reduction::kMean;
};

// Returns -log of the probability that sigmoid(logits) gives the labels. Labels are in [0, 1] and
// have the shape of `logits`.
Output SigmoidCrossEntropy(const LocatedOutput& labels, Output logits,
                           const LossOptions& options = {});
// Returns -log of the probability that softmax(logits) gives the label: one loss for each row of
// `logits`, [batch, classes]. `labels` are the probabilities of the classes, or class numbers
// (int32 or int64, of shape [batch]).
Output SoftmaxCrossEntropy(const LocatedOutput& labels, Output logits,
                           const LossOptions& options = {});
// Returns max(0, 1 - (2 * label - 1) * logit), for labels 0 or 1.
Output Hinge(const LocatedOutput& labels, Output logits, const LossOptions& options = {});
// Returns e^2 / 2 for |e| <= delta, else delta * (|e| - delta / 2), which limits the gradients of
// outliers. e = labels - predictions.
Output Huber(const LocatedOutput& labels, Output predictions, double delta = 1,
             const LossOptions& options = {});
// Returns (labels - predictions)^2.
Output SquaredError(const LocatedOutput& labels, Output predictions,
                    const LossOptions& options = {});

}  // namespace penstock::client

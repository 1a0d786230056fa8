// SPDX-License-Identifier: Apache-2.0
//
// Metrics over a stream of batches: the quality of predictions since the last reset.
//
//   Metric auc = Auc(program, "auc", labels, Sigmoid(logits));
//   session->Execute(auc.reset);
//   while (...) session->Execute(auc.update, feeds);
//   session->Fetch(auc.value)
//
// The counts are local variables: each worker has its own, and they are not saved. An invalid
// argument sets the program's error.
#pragma once

#include <string>
#include <vector>

#include "client/program.h"

namespace penstock::client {

struct Metric {
  Output value;   // float64 scalar: the metric of all batches since the reset; NaN if undefined
  Output update;  // op: adds a batch to the counts
  Output reset;   // op: clears the counts; run it once before the first update
};

// Computes sum(weight * value) / sum(weight). `weights` have the shape of `values`; 1 if not given.
Metric MeanOf(Program& program, const std::string& name, const LocatedOutput& values,
              Output weights = {});
// Computes the fraction of elements whose label and prediction are equal.
Metric Accuracy(Program& program, const std::string& name, const LocatedOutput& labels,
                Output predictions);
// Computes, among the examples with a score above `threshold`, the fraction with a label above 0.
Metric Precision(Program& program, const std::string& name, const LocatedOutput& labels,
                 Output scores, double threshold = 0.5);
// Computes, among the examples with a label above 0, the fraction with a score above `threshold`.
Metric Recall(Program& program, const std::string& name, const LocatedOutput& labels, Output scores,
              double threshold = 0.5);
// Computes the area under the ROC curve: the probability that an example with a label above 0 has a
// higher score than one with another label. Scores must be in [0, 1] and are rounded to `buckets`
// equal steps; a pair in the same bucket counts half.
Metric Auc(Program& program, const std::string& name, const LocatedOutput& labels, Output scores,
           int buckets = 1000);
// Returns the exact area under the ROC curve of one batch, such as all test examples: a float64
// scalar, for scores of any range. It keeps no counts, so it does not compare examples of different
// batches. NaN if all labels, or no labels, are above 0.
Output ExactAuc(const LocatedOutput& labels, Output scores);

}  // namespace penstock::client

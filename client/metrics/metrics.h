// SPDX-License-Identifier: Apache-2.0
//
// Metrics over a stream of batches: how good predictions have been since the last reset.
//
//   Metric auc = Auc(program, "auc", labels, Sigmoid(logits));
//   session->Execute(auc.reset);
//   while (...) session->Execute(auc.update, feeds);
//   session->Fetch(auc.value)
//
// Their counts are local variables: each worker has its own, and they are not saved. Mistakes
// become the program's error.
#pragma once

#include <string>
#include <vector>

#include "client/program.h"

namespace penstock::client {

struct Metric {
  Output value;   // float64 scalar, from all batches so far; NaN if it is not defined
  Output update;  // op: counts a batch
  Output reset;   // op: forgets all; run it once before the first update
};

// sum(weight * value) / sum(weight). `weights` are of the shape of `values`; 1 if not given.
Metric MeanOf(Program& program, const std::string& name, Output values, Output weights = {});
// The share of elements that are equal.
Metric Accuracy(Program& program, const std::string& name, Output labels, Output predictions);
// The share of examples with a label above 0 among those with a score above `threshold`.
Metric Precision(Program& program, const std::string& name, Output labels, Output scores,
                 double threshold = 0.5);
// The share of examples with a score above `threshold` among those with a label above 0.
Metric Recall(Program& program, const std::string& name, Output labels, Output scores,
              double threshold = 0.5);
// The area under the ROC curve: how probable it is that an example with a label above 0 has a
// higher score than one without. Scores are in [0, 1] and told apart in `buckets` equal steps;
// those within one count half.
Metric Auc(Program& program, const std::string& name, Output labels, Output scores,
           int buckets = 1000);

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// Inputs of the CTC ops: logits [time, batch, classes] with the length of each sequence, and sparse
// lists of labels.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {

struct CtcInput {
  int64_t time = 0, batch = 0, classes = 0;
  std::vector<int64_t> lengths;

  // From inputs `logits` and `sequence_length`. A length beyond `time` is an error of code
  // `too_long`; one below 0 counts as 0.
  static StatusOr<CtcInput> Of(const Tensor& logits, const Tensor& sequence_length,
                               StatusCode too_long);
  // The first logit of one step of one sequence.
  int64_t at(int64_t t, int64_t b) const { return (t * batch + b) * classes; }
};

// One label sequence for each element of the batch, as a sparse matrix: outputs `first` (indices),
// first + stride (values) and first + 2 * stride (dense shape).
Status OutputLabels(KernelContext& ctx, const std::vector<std::vector<int64_t>>& labels, int first,
                    int stride);

// Their shapes, for `paths` such matrices; log probabilities [batch, paths] follow.
Status DecoderShape(ShapeScope& s, int paths);

}  // namespace penstock

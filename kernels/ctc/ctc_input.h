// SPDX-License-Identifier: Apache-2.0
//
// Reads the inputs of the CTC ops (logits [time, batch, classes] and the length of each sequence),
// and writes label sequences as sparse outputs.
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

  // Reads the inputs `logits` and `sequence_length`. InvalidArgument if one has a wrong shape, or
  // an error with code `too_long` if a length exceeds `time`; a negative length counts as 0.
  static StatusOr<CtcInput> Of(const Tensor& logits, const Tensor& sequence_length,
                               StatusCode too_long);
  // Returns the index of the first logit of step t of sequence b.
  int64_t at(int64_t t, int64_t b) const { return (t * batch + b) * classes; }
};

// Writes one label sequence per batch element as a sparse matrix, to the outputs `first` (indices),
// first + stride (values) and first + 2 * stride (dense shape).
Status OutputLabels(KernelContext& ctx, const std::vector<std::vector<int64_t>>& labels, int first,
                    int stride);

// Shape function: sets the shapes of the outputs of a decoder: `paths` sparse matrices of labels,
// and then the log probabilities [batch, paths].
Status DecoderShape(ShapeScope& s, int paths);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Short texts of different lengths (the sayings of the Debian package fortunes, the paragraphs of a
// novel), and batches of such as are about equally long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/queue_runner.h"
#include "core/base/env.h"
#include "core/base/status.h"
#include "core/op/output.h"
#include "core/tensor/tensor.h"

namespace penstock::examples {

// Texts of 1 to `length_max` bytes, without zeros. One in 20 is for testing.
struct Texts {
  std::vector<std::string> train, test;
};
// From all files of a directory in which texts are parted by lines that are "%". Longer ones are
// cut in pieces. Files of other forms (*.dat, *.u8, what is not text) are left out.
StatusOr<Texts> ReadTexts(Env& env, const std::string& directory, int64_t length_max);

// A batch of texts that a model reads and is to predict, character by character: each text with a
// zero in front, and with a zero behind. uint8[batch, time], and int32[batch], the length with that
// zero; what lies behind is zero.
struct TextBatch {
  Tensor inputs, targets, lengths;
};
// REQUIRES 0 <= begin < end <= texts.size().
TextBatch MakeBatch(const std::vector<std::string>& texts, size_t begin, size_t end);

// The same in the graph, without end: texts in random order, grouped by length in queues, so that
// few steps of the network are for rows that have ended. Each epoch has another order. REQUIRES
// that there are texts.
struct QueuedBatch {
  Output inputs, targets, lengths;
  Output padding() const;  // float: the part of all positions that is for rows that have ended
};
QueuedBatch QueueTexts(client::QueueRunners& runners, const std::vector<std::string>& texts,
                       int32_t batch_size, int64_t seed);

// Returns the average padding() if texts were not grouped by length: batches of `texts` in random
// order.
double UngroupedPadding(const std::vector<std::string>& texts, int64_t batch_size);

}  // namespace penstock::examples

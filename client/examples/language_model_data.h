// SPDX-License-Identifier: Apache-2.0
//
// Short texts of different lengths (the sayings of the Debian package fortunes, the paragraphs of a
// novel), and batches of texts with similar lengths.
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

// Texts of 1 to `length_max` bytes, without zero bytes. One text in 20 is for testing.
struct Texts {
  std::vector<std::string> train, test;
};
// Reads the texts of the files of a directory. A line "%" ends a text. Texts of more than
// `length_max` bytes are cut into pieces. Skips *.dat, *.u8, and files that are not text.
StatusOr<Texts> ReadTexts(Env& env, const std::string& directory, int64_t length_max);

// A batch of texts that a model has to predict character by character. Each row of `inputs` is a
// zero and the text, each row of `targets` the text and a zero; both are uint8[batch, time], padded
// with zeros. `lengths` is int32[batch]: the number of bytes of each text, plus one for its zero.
struct TextBatch {
  Tensor inputs, targets, lengths;
};
// Returns the texts [begin, end) as a batch. REQUIRES 0 <= begin < end <= texts.size().
TextBatch MakeBatch(const std::vector<std::string>& texts, size_t begin, size_t end);

// An endless sequence of TextBatches, made by nodes of the graph. Texts come in a random order that
// differs between epochs, and queues group them by length, so there is little padding. QueueTexts
// REQUIRES that `texts` is not empty.
struct QueuedBatch {
  Output inputs, targets, lengths;
  Output padding() const;  // Returns the fraction of positions that are padding, a float scalar.
};
QueuedBatch QueueTexts(client::QueueRunners& runners, const std::vector<std::string>& texts,
                       int32_t batch_size, int64_t seed);

// Returns the average padding() of batches of `texts` in random order, not grouped by length.
double UngroupedPadding(const std::vector<std::string>& texts, int64_t batch_size);

}  // namespace penstock::examples

// SPDX-License-Identifier: Apache-2.0
//
// Short texts of different lengths (the sayings of the Debian package fortunes), and batches of
// such as are about equally long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock::examples {

// Texts of 1 to `length_max` bytes, without zeros. One in 20 is for testing.
struct Texts {
  std::vector<std::string> train, test;
};
// From all files of a directory in which texts are parted by lines that are "%". Longer ones are
// cut in pieces. Files of other forms (*.dat, *.u8, what is not text) are left out.
StatusOr<Texts> ReadTexts(Env& env, const std::string& directory, int64_t length_max);

// What a model reads and is to say, character by character: the text with a zero in front, and
// with a zero behind. uint8[batch, time], and int32[batch], the length with that zero; what lies
// behind is zero.
struct TextBatch {
  Tensor inputs, targets, lengths;
};

// Batches without end, each epoch in another order. Texts are grouped by length, so that few steps
// of the network are for rows that have ended. Which texts are in a batch depends on its number and
// the seed alone.
class TextBatches {
 public:
  // REQUIRES 0 < batch_size <= texts.size(). What is left at the end of an epoch is dropped.
  TextBatches(std::vector<std::string> texts, int64_t batch_size, uint64_t seed);

  int64_t per_epoch() const { return static_cast<int64_t>(texts_.size()) / batch_size_; }
  TextBatch Get(int64_t number);
  // The part of all steps in the batches seen so far that was for rows that had ended.
  double padding() const { return steps_ == 0 ? 0 : 1 - static_cast<double>(used_) / steps_; }

 private:
  void Arrange(int64_t epoch);

  const std::vector<std::string> texts_;
  const int64_t batch_size_;
  const uint64_t seed_;
  std::vector<int64_t> order_;  // of epoch_
  int64_t epoch_ = -1;
  int64_t steps_ = 0, used_ = 0;
};

}  // namespace penstock::examples

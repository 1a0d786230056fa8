// SPDX-License-Identifier: Apache-2.0
//
// The Fashion-MNIST pictures (28 x 28 grey pixels, ten kinds of clothes), and batches of them.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock::examples {

// uint8[n,28,28] and uint8[n].
struct Pictures {
  Tensor images, labels;
  int64_t size() const { return labels.num_elements(); }
  // [begin, end)
  Pictures Slice(int64_t begin, int64_t end) const {
    return {images.Slice(begin, end), labels.Slice(begin, end)};
  }
};

struct FashionMnist {
  Pictures train, test;
};
// From the files of the Debian package dataset-fashion-mnist, compressed or not.
StatusOr<FashionMnist> ReadFashionMnist(Env& env, const std::string& directory);

// Batches for ever, each epoch in another order. The same seed gives the same batches.
class Batches {
 public:
  // REQUIRES 0 < batch_size <= pictures.size(). What is left at the end of an epoch is dropped.
  Batches(Pictures pictures, int64_t batch_size, uint64_t seed);

  Pictures Next();
  int64_t epoch() const { return epoch_; }

 private:
  void Shuffle();

  const Pictures pictures_;
  const int64_t batch_size_;
  std::mt19937_64 random_;
  std::vector<int64_t> order_;
  int64_t next_ = 0, epoch_ = 0;
};

}  // namespace penstock::examples

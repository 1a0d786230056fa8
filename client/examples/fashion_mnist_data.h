// SPDX-License-Identifier: Apache-2.0
//
// The Fashion-MNIST pictures (28 x 28 grey pixels, ten kinds of clothes), and batches of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock::examples {

// The images are uint8[n,28,28], the labels uint8[n].
struct Pictures {
  Tensor images, labels;
  int64_t size() const { return labels.num_elements(); }
  // Returns the pictures [begin, end).
  Pictures Slice(int64_t begin, int64_t end) const {
    return {images.Slice(begin, end), labels.Slice(begin, end)};
  }
};

struct FashionMnist {
  Pictures train, test;
};
// Reads the files of the Debian package dataset-fashion-mnist, compressed or not.
StatusOr<FashionMnist> ReadFashionMnist(Env& env, const std::string& directory);

// An endless sequence of batches, in an order that differs between epochs. The pictures of a batch
// depend only on its number and the seed, so a training can be resumed at any batch.
class Batches {
 public:
  // REQUIRES: 0 < batch_size <= pictures.size(). Drops the last pictures of an epoch if they do not
  // fill a batch.
  Batches(Pictures pictures, int64_t batch_size, uint64_t seed);

  // Returns batch `number`. Reading in order is fastest, because each change of epoch costs a
  // shuffle.
  Pictures Get(int64_t number);

 private:
  void Shuffle(int64_t epoch);

  const Pictures pictures_;
  const int64_t batch_size_;
  const uint64_t seed_;
  std::vector<int64_t> order_;  // the order of the pictures in epoch_
  int64_t epoch_ = -1;
};

}  // namespace penstock::examples

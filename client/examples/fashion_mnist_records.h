// SPDX-License-Identifier: Apache-2.0
//
// Reads the Fashion-MNIST pictures from TFRecord files that `penstock convert` has written. Ops on
// the training task read the training pictures, so the pictures never pass through the client.
#pragma once

#include <string>

#include "client/dataset.h"
#include "client/exactly_once.h"
#include "client/examples/fashion_mnist_data.h"
#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock::examples {

struct ReadOptions {
  int64_t batch_size = 1;
  int64_t seed = 1;
  client::WorkerShare share = {};
};
// Returns batches of training pictures and their labels, uint8[batch_size,28,28] and
// uint8[batch_size], without end. Reads this worker's shards (every n-th one, for n workers) in
// random order, and mixes thousands of records. The same seeds give the same batches. This call
// lists the shards, `directory`/train-*; if there are none, or fewer than workers, the error says
// how to make them.
StatusOr<client::Dataset> ReadPictureBatches(GraphBuilder& program, Env& env,
                                             const std::string& directory,
                                             const ReadOptions& options);

// Reads all pictures of `directory`/test-*.
StatusOr<Pictures> ReadTestRecords(Env& env, const std::string& directory);

}  // namespace penstock::examples

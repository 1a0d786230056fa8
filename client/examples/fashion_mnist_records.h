// SPDX-License-Identifier: Apache-2.0
//
// The Fashion-MNIST pictures from TFRecord files, as `penstock convert` writes them: read by ops on
// the task that trains, through queues, without passing the client.
#pragma once

#include <string>

#include "client/exactly_once.h"
#include "client/examples/fashion_mnist_data.h"
#include "client/queue_runner.h"
#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock::examples {

struct PictureBatch {
  Output images, labels;  // uint8[batch_size,28,28] and uint8[batch_size]
};
struct ReadOptions {
  int32_t batch_size = 1;
  int64_t seed = 1;
  client::WorkerShare share = {};
};
// Adds a pipeline to the runners' program, on the device of the scope: this worker's share of the
// shards, every n-th, in random order, for ever, and batches mixed out of thousands of records. The
// same seeds give the same batches. The names of the shards, `directory`/train-*, are looked up
// here; an error says how to make them.
StatusOr<PictureBatch> ReadPictureBatches(client::QueueRunners& runners, Env& env,
                                          const std::string& directory, const ReadOptions& options);

// All pictures of `directory`/test-*.
StatusOr<Pictures> ReadTestRecords(Env& env, const std::string& directory);

}  // namespace penstock::examples

// SPDX-License-Identifier: Apache-2.0
//
// The workloads that tools/bench measures on Penstock: graphs, models and sizes. workloads.py has
// the same sizes for the peers.
#pragma once

#include <cstdint>
#include <string>

#include "client/program.h"
#include "core/base/status.h"

namespace penstock::benchmark {

inline constexpr int kChainNodes = 10000;
inline constexpr int kWideNodes = 10000;
inline constexpr int kRandomWidth = 16, kRandomDepth = 625;
inline constexpr int kBatch = 128, kPixels = 28 * 28;
inline constexpr int kTableRows = 1 << 20, kTableWidth = 64, kBags = 512, kBagIds = 8,
                     kBagBatches = 64;
inline constexpr int kExamples = 10000, kShuffled = 1000, kMapBatch = 1000;

// Returns the number of bytes of a transfer size, such as 4096 for "4KB". InvalidArgument if
// tools/bench has no such size.
StatusOr<int64_t> TransferBytes(const std::string& name);
// Returns the number of all-reduces of `bytes` bytes in one round. All ranks must use the same
// number.
int64_t AllReduceCount(int64_t bytes);

struct ExecutorGraph {
  Outputs feeds;
  Output target;
  int nodes = 0;
};
// Builds a graph of `shape` ("chain", "wide", "random"). Its nodes are of `kind`: scalar additions
// ("add", with a scalar to feed), or nodes that do nothing ("noop").
StatusOr<ExecutorGraph> BuildExecutorGraph(client::Program& program, const std::string& shape,
                                           const std::string& kind);

// One training step (gradient descent) of "mlp" (784-512-512-10) or "convnet" (two 5x5 convolutions
// of 32 and 64 channels with pooling, 1024, 10) on kBatch pictures.
struct TrainingGraph {
  Output images, labels, train, init;
};
StatusOr<TrainingGraph> BuildTraining(client::Program& program, const std::string& model);
// The same with these pictures and labels, instead of placeholders.
StatusOr<TrainingGraph> BuildTraining(client::Program& program, const std::string& model,
                                      Output images, Output labels);

// One training step (Adagrad) of a dynamic table of kTableRows rows. For each of kBags examples,
// the step sums kBagIds rows. The loss is the mean square of the sums.
struct EmbeddingGraph {
  Output ids, splits, train, init;
};
EmbeddingGraph BuildEmbedding(client::Program& program);

}  // namespace penstock::benchmark

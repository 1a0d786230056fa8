// SPDX-License-Identifier: Apache-2.0
//
// What tools/bench measures: sizes, models, and how long to look. workloads.py holds the same
// numbers for the peers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/program.h"
#include "core/base/status.h"

namespace penstock::benchmark {

inline constexpr int kChainNodes = 10000;
inline constexpr int kWideNodes = 10000;
inline constexpr int kRandomWidth = 16, kRandomDepth = 625;
inline constexpr double kRoundSeconds = 0.4;

// "4KB" -> 4096.
StatusOr<int64_t> TransferBytes(const std::string& name);

// A graph of `shape` ("chain", "wide", "random") made of scalar additions ("add") or of nodes that
// do nothing ("noop"). Feed placeholder "x" and run `target`.
struct ExecutorGraph {
  Output x, target;
  int nodes = 0;
};
StatusOr<ExecutorGraph> BuildExecutorGraph(client::Program& program, const std::string& shape,
                                           const std::string& kind);

// One training step (gradient descent) of "mlp" (784-512-512-10) or "convnet" (two 5x5 convolutions
// of 32 and 64 channels with pooling, 1024, 10), batch 128.
struct TrainingGraph {
  Output images, labels, train, init;
};
StatusOr<TrainingGraph> BuildTraining(client::Program& program, const std::string& model);

// The median time of a step over one round, after a few to warm up. The first error ends it.
StatusOr<double> MedianSeconds(const std::function<Status()>& step);

}  // namespace penstock::benchmark

// SPDX-License-Identifier: Apache-2.0
//
// Trains small models on one batch. Returns the results, and the memory that the steps take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/optimizers.h"
#include "client/program.h"
#include "client/session.h"
#include "core/compiler/pass/compile_report.h"

namespace penstock {

struct Training {
  client::Program program;
  std::unique_ptr<client::Optimizer> optimizer;
  Output init, loss, train;
  std::vector<client::Feed> feeds;
};

// Makes the convnet of client/examples/fashion_mnist.
std::unique_ptr<Training> FashionConvnet(int64_t batch);
// Makes `layers` layers of 3x3 filters with relu, over 28x28 pictures, and one dense layer.
std::unique_ptr<Training> DeepConvnet(int layers, int64_t batch);
// Makes an LSTM of `units` units over `steps` inputs, unrolled without a loop, and one dense layer.
std::unique_ptr<Training> UnrolledLstm(int steps, int64_t batch, int64_t units);

// The results of a training in its own session, in this process.
struct Trained {
  std::vector<float> losses;
  std::vector<Tensor> variables;
  int64_t peak_bytes = 0;  // peak bytes of the last step's tensors, from the memory account
  double step_ms = 0;      // time of the shortest step
};
StatusOr<Trained> Train(const Training& training, const SessionOptions& options, int steps = 3);

// Returns the compiler's prediction for a step of the training. `limit`: see
// SessionOptions::memory_limit.
StatusOr<MemoryReport> Predict(const Training& training, int64_t limit = 0);

// Returns whether losses and variables are the same, bit for bit.
bool SameResults(const Trained& a, const Trained& b);

}  // namespace penstock

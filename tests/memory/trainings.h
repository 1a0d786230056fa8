// SPDX-License-Identifier: Apache-2.0
//
// Trainings: small models with one batch, and what their steps compute and take of memory.
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

// The convnet of client/examples/fashion_mnist.
std::unique_ptr<Training> FashionConvnet(int64_t batch);
// 3x3 filters with relu, `layers` times, over 28x28 pictures; one dense layer.
std::unique_ptr<Training> DeepConvnet(int layers, int64_t batch);
// An LSTM of `units` over `steps` inputs, without a loop; one dense layer.
std::unique_ptr<Training> UnrolledLstm(int steps, int64_t batch, int64_t units);

// The steps of a session of its own, in this process.
struct Trained {
  std::vector<float> losses;
  std::vector<Tensor> variables;
  int64_t peak_bytes = 0;  // of the last step's tensors, as the task's account counts them
  double step_ms = 0;      // the least of all steps
};
StatusOr<Trained> Train(const Training& training, const SessionOptions& options, int steps = 3);

// Returns the prediction of the compiler for such a step. `limit` as SessionOptions::memory_limit.
StatusOr<MemoryReport> Predict(const Training& training, int64_t limit = 0);

// Whether losses and variables are the same, bit for bit.
bool SameResults(const Trained& a, const Trained& b);

}  // namespace penstock

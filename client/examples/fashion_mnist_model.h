// SPDX-License-Identifier: Apache-2.0
//
// Two models for the Fashion-MNIST pictures, and their loss and accuracy.
#pragma once

#include <functional>
#include <string>

#include "client/program.h"
#include "core/base/status.h"

namespace penstock::examples {

// Adds the forward pass: uint8[n,28,28] -> float[n,10], one logit per class. May be called many
// times; every call uses the same variables.
using Model = std::function<Output(Output images)>;

// Adds the variables of "mlp" (784-512-512-10: 670,000 numbers) or "convnet" (two layers of 16 and
// 32 filters of 3x3, each with 2x2 pooling, then 128-10: 207,000 numbers, a third of the mlp's,
// with higher accuracy), and returns the model. With several ps tasks, each large matrix is a
// PartitionedVariable with one part for each task. InvalidArgument if `name` is neither of the two.
StatusOr<Model> MakeModel(client::Program& program, const std::string& name, int64_t seed,
                          int ps_tasks = 1);

// The model's means over a batch.
struct Measures {
  Output loss;      // cross entropy
  Output accuracy;  // fraction of pictures whose class has the largest logit
};
Measures Measure(Output logits, Output labels);  // `labels` is uint8[n]

}  // namespace penstock::examples

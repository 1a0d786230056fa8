// SPDX-License-Identifier: Apache-2.0
//
// Losses over so many classes that a step compares the true ones with a few drawn ones only. Only
// the rows of these classes travel, and only they are trained. For prediction compute all logits.
//
//   PartitionedVariable weights(program, "weights", {classes, 64}, GlorotUniform(), {.parts = 2});
//   PartitionedVariable biases(program, "biases", {classes}, Zeros(), {.parts = 2});
//   Output loss = SampledSoftmax({weights, biases}, labels, hidden, {.sampled = 100});
//
// They return one loss for each example, as tf.nn.sampled_softmax_loss and tf.nn.nce_loss do.
#pragma once

#include <cstdint>

#include "client/embedding/partitioned_variable.h"

namespace penstock::client {

// The last layer of a classifier, which turns hidden units into logits: weights [classes, units]
// and biases [classes].
struct ClassTable {
  PartitionedVariable weights, biases;
};

// Classes that were drawn, and how often each class is expected among that many.
struct Candidates {
  Output classes;        // int64[sampled]
  Output true_expected;  // float[batch, labels]
  Output expected;       // float[sampled]
};

struct SampledOptions {
  int64_t sampled = 64;  // classes drawn for a batch; no class twice
  // Class k with a probability of log((k + 2) / (k + 1)) / log(classes + 1), for classes that are
  // sorted by falling frequency; else all alike.
  bool log_uniform = true;
  int64_t seed = 0;  // 0: other classes in each run
  // Drawn classes that are an example's label do not count for it.
  bool remove_accidental_hits = true;
  Candidates candidates = {};  // these instead of drawn ones
};

// `labels`: int64[batch, n], the true classes of each example, n >= 1; `inputs`: [batch, units].
Output SampledSoftmax(const ClassTable& table, Output labels, Output inputs,
                      const SampledOptions& options = {});
// Noise-contrastive estimation: is each class a true one, or a drawn one? (tf.nn.nce_loss does not
// remove accidental hits unless it is told to.)
Output NoiseContrastive(const ClassTable& table, Output labels, Output inputs,
                        const SampledOptions& options = {});

}  // namespace penstock::client

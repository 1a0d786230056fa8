// SPDX-License-Identifier: Apache-2.0
//
// Losses for very many classes: a step compares the true classes only with a few sampled ones. It
// sends only the rows of these classes between tasks, and trains only these. For prediction compute
// all logits.
//
//   PartitionedVariable weights(program, "weights", {classes, 64}, GlorotUniform(), {.parts = 2});
//   PartitionedVariable biases(program, "biases", {classes}, Zeros(), {.parts = 2});
//   Output loss = SampledSoftmax({weights, biases}, labels, hidden, {.sampled = 100});
//
// The functions return one loss for each example, as tf.nn.sampled_softmax_loss and tf.nn.nce_loss
// do.
#pragma once

#include <cstdint>

#include "client/embedding/partitioned_variable.h"

namespace penstock::client {

// The last layer of a classifier, which turns hidden units into logits: weights [classes, units]
// and biases [classes].
struct ClassTable {
  PartitionedVariable weights, biases;
};

// Sampled classes, and how often a sample is expected to contain each true class and each sampled
// class.
struct Candidates {
  Output classes;        // int64[sampled]
  Output true_expected;  // float[batch, labels]
  Output expected;       // float[sampled]
};

struct SampledOptions {
  int64_t sampled = 64;  // number of distinct classes sampled for a batch
  // true: class k has probability log((k + 2) / (k + 1)) / log(classes + 1), for classes sorted by
  // falling frequency. false: all classes have the same probability.
  bool log_uniform = true;
  int64_t seed = 0;  // 0: different samples in each run
  // If true, sampled classes that are labels of the example are ignored.
  bool remove_accidental_hits = true;
  Candidates candidates = {};  // if given, the loss uses these and does not sample
};

// Returns the sampled softmax losses. `labels`: int64[batch, n], the true classes of each example,
// n >= 1; `inputs`: [batch, units].
Output SampledSoftmax(const ClassTable& table, const LocatedOutput& labels, Output inputs,
                      const SampledOptions& options = {});
// Returns the losses of noise-contrastive estimation, which learns to tell true classes from
// sampled ones. Unlike tf.nn.nce_loss, removes accidental hits by default.
Output NoiseContrastive(const ClassTable& table, const LocatedOutput& labels, Output inputs,
                        const SampledOptions& options = {});

}  // namespace penstock::client

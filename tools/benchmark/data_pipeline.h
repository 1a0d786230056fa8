// SPDX-License-Identifier: Apache-2.0
//
// The measurements data/*: input pipelines. InvalidArgument for an unknown name.
#pragma once

#include <string>

#include "tools/benchmark/rounds.h"

namespace penstock::benchmark {

// Measures elements per second of a pipeline:
//   "map"                numbers, plus one, in batches
//   "examples"           TFRecord files of tf.train.Examples, each parsed, shuffled, in batches
//   "parallel_examples"  the same, parsed in parallel, and prefetched
//   "batched_examples"   the same, parsed in batches
// "training" measures milliseconds of a step of the model "mlp" that reads its batches from such
// files; "fed_training" of one whose batches the client draws from memory and feeds.
StatusOr<Round> PrepareData(const std::string& what);

}  // namespace penstock::benchmark

// SPDX-License-Identifier: Apache-2.0
//
// The measurements that need one process: executor/*, local_step/* and training/*.
#pragma once

#include <string>

#include "tools/benchmark/rounds.h"

namespace penstock::benchmark {

// Operations per second of the executor on a graph of workloads.h.
StatusOr<Round> PrepareExecutor(const std::string& shape, const std::string& kind);
// Microseconds of feeding a number, adding one and fetching it; by "run" (names looked up) or by
// "callable" (prepared).
StatusOr<Round> PrepareLocalStep(const std::string& how);
// Milliseconds of a training step of a model of workloads.h.
StatusOr<Round> PrepareTraining(const std::string& model);
// Milliseconds of a training step of a large table, of which all rows were trained before. `kind`
// is "dynamic".
StatusOr<Round> PrepareEmbedding(const std::string& kind);

}  // namespace penstock::benchmark

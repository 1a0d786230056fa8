// SPDX-License-Identifier: Apache-2.0
//
// The measurements that need one process: executor/*, local_step/*, training/* and embedding/*.
// Each function prepares one measurement and returns its Round. InvalidArgument for an unknown
// name.
#pragma once

#include <string>

#include "tools/benchmark/rounds.h"

namespace penstock::benchmark {

// Measures operations per second of the executor on a graph of workloads.h.
StatusOr<Round> PrepareExecutor(const std::string& shape, const std::string& kind);
// Measures microseconds of a step that feeds a number, adds one and fetches the sum. `how`: "run"
// calls Session::Run, which looks up names; "callable" calls a prepared Callable.
StatusOr<Round> PrepareLocalStep(const std::string& how);
// Measures milliseconds of a training step of a model of workloads.h.
StatusOr<Round> PrepareTraining(const std::string& model);
// Measures milliseconds of a training step of a large table, in which all rows were trained before.
// `kind` is "dynamic".
StatusOr<Round> PrepareEmbedding(const std::string& kind);

}  // namespace penstock::benchmark

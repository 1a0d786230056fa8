// SPDX-License-Identifier: Apache-2.0
//
// The text file "checkpoint" in a directory of checkpoints: which ones a training run has written.
// It is written last, after the checkpoint that it names.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// Prefixes are as they stand in the file: absolute, or relative to its directory.
struct CheckpointState {
  std::string latest;
  std::vector<std::string> all;    // oldest first
  std::vector<double> timestamps;  // seconds, one for each of `all`, or none
  double last_preserved_timestamp = 0;
};

// NotFound where the directory has none; DataLoss where it cannot be parsed.
StatusOr<CheckpointState> ReadCheckpointState(Env& env, const std::string& directory);
// Atomically: a reader sees the old file or the new one.
Status WriteCheckpointState(Env& env, const std::string& directory, const CheckpointState& state);

}  // namespace penstock

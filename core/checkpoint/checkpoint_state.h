// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the text file "checkpoint" of a directory, which lists the checkpoints that a
// training run has written. A saver writes it after the checkpoint that it names as the latest.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// Prefixes are as in the file: absolute, or relative to the file's directory.
struct CheckpointState {
  std::string latest;
  std::vector<std::string> all;    // oldest first
  std::vector<double> timestamps;  // in seconds; one for each of `all`, or empty
  double last_preserved_timestamp = 0;
};

// Reads the file of a directory. NotFound if there is no file; DataLoss if it cannot be parsed.
StatusOr<CheckpointState> ReadCheckpointState(Env& env, const std::string& directory);
// Writes atomically: a reader sees the old file or the new one.
Status WriteCheckpointState(Env& env, const std::string& directory, const CheckpointState& state);

}  // namespace penstock

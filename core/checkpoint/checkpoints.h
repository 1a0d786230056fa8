// SPDX-License-Identifier: Apache-2.0
//
// Lists and verifies the checkpoints of a directory, and finds the one to resume from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// Reads and verifies every byte of a checkpoint and of its bases (base_checkpoints.h). DataLoss
// names the first file or tensor that is damaged.
Status VerifyCheckpoint(Env& env, const std::string& prefix);

// Returns the prefixes of the checkpoints in `directory`, the one to resume from first: the
// checkpoints in the state file, newest first, then all others by the number at the end of their
// names, highest first. (The state file comes first because higher numbers may be from an earlier
// run.)
StatusOr<std::vector<std::string>> ListCheckpoints(Env& env, const std::string& directory);

// The first checkpoint in the order of ListCheckpoints that passes VerifyCheckpoint, and the
// damaged checkpoints before it, each with its error.
struct NewestGood {
  struct Skipped {
    std::string prefix;
    Status why;
  };
  std::string prefix;  // empty: no checkpoint is good
  std::vector<Skipped> skipped;
};
StatusOr<NewestGood> FindNewestGood(Env& env, const std::string& directory);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a directory: which there are, which of them are good, and where to go on from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// Reads every byte of a checkpoint. DataLoss names the first file or tensor that is damaged.
Status VerifyCheckpoint(Env& env, const std::string& prefix);

// The prefixes of the checkpoints in `directory`, the one to go on from first: those that the state
// file names, newest first, then any others, by the number at the end of their names, highest
// first. (What the state file names comes before higher numbers: they may be of an earlier run.)
StatusOr<std::vector<std::string>> ListCheckpoints(Env& env, const std::string& directory);

// The first of ListCheckpoints that verifies, and the ones passed over, each with what is wrong.
struct NewestGood {
  struct Skipped {
    std::string prefix;
    Status why;
  };
  std::string prefix;  // empty: there is none
  std::vector<Skipped> skipped;
};
StatusOr<NewestGood> FindNewestGood(Env& env, const std::string& directory);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that hold changes only. Such a checkpoint has string scalars whose names end in
// kBaseSuffix. Each holds the file name of the older checkpoint, in the same directory, to which
// the changes are to be applied; an empty string means that this checkpoint has complete values.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

inline constexpr char kBaseSuffix[] = "/base_checkpoint";

// Returns the prefix of the checkpoint that `prefix` builds on; empty if it is complete. DataLoss
// if a tensor that names the base is not a string scalar with one file name, or if several bases
// are named.
StatusOr<std::string> BaseOf(Env& env, const std::string& prefix);
// Returns the prefixes of a complete checkpoint and those that build on it, up to `prefix`.
// NotFound if one of them is missing, DataLoss if one is damaged or builds on itself. Verifies only
// what it reads.
StatusOr<std::vector<std::string>> ChainOf(Env& env, const std::string& prefix);

}  // namespace penstock

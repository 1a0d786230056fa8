// SPDX-License-Identifier: Apache-2.0
//
// PrintCheckpointDiff: compares two checkpoints.
#pragma once

#include <string>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// Prints a line for each tensor that only one checkpoint has, or whose type, shape or elements
// differ, and finally their number. Returns whether the checkpoints are equal. Reads all data, and
// so verifies the checksums.
StatusOr<bool> PrintCheckpointDiff(Env& env, const std::string& before, const std::string& after);

}  // namespace penstock

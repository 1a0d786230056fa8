// SPDX-License-Identifier: Apache-2.0
//
// PrintCheckpointDiff: compares two checkpoints.
#pragma once

#include <string>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// Prints a line for each tensor that only one of them has, or whose type, shape or elements differ,
// and a last one with the count. Returns whether they are equal. Reads whole tensors, and so
// verifies their checksums.
StatusOr<bool> PrintCheckpointDiff(Env& env, const std::string& before, const std::string& after);

}  // namespace penstock

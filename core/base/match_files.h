// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

// The paths that match a pattern of *, ? and [...], each within one component of the path, sorted.
// Directories that do not exist or may not be read hold nothing that matches.
std::vector<std::string> MatchFiles(Env& env, const std::string& pattern);

// PermissionDenied if the directory in front of the pattern's first wildcard is not in that of a
// RootedEnv: for callers that find nothing, so that an empty answer does not hide it.
Status CheckPattern(Env& env, const std::string& pattern);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// MatchFiles: finds the files whose paths match a pattern with wildcards, for ops and flags that
// name several files. The functions have no state and may be called concurrently.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

// Returns the paths that match a pattern of *, ? and [...], sorted. A wildcard matches within one
// component of the path. Directories that do not exist or cannot be read count as empty.
std::vector<std::string> MatchFiles(Env& env, const std::string& pattern);

// Returns PermissionDenied if `env` is a RootedEnv and the directory in front of the pattern's
// first wildcard is outside of its directory, else OK. Call this if MatchFiles finds nothing, so
// that the user learns the reason.
Status CheckPattern(Env& env, const std::string& pattern);

}  // namespace penstock

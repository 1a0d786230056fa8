// SPDX-License-Identifier: Apache-2.0
//
// MergeBundles: makes one checkpoint of the parts that the tasks of a cluster have written.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// Gives the data files of `sources` names under `destination`, on the same file system, and writes
// the index of all. Slices of one tensor may be spread over the sources. Afterwards the sources are
// gone, and with `delete_old_directories` their directories too, where nothing else is in them.
//
// Everything that can be checked is checked first: a damaged or missing source leaves everything as
// it is. After a crash the destination is the old checkpoint, none, or the new one.
Status MergeBundles(Env& env, const std::vector<std::string>& sources,
                    const std::string& destination, bool delete_old_directories);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// MergeBundles: makes one checkpoint of the parts that the tasks of a cluster have written.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

struct MergeOptions {
  bool delete_old_directories = true;  // of the sources, where nothing else is in them
  bool allow_missing = false;          // go on without sources that do not exist; one must
};

// Gives the data files of `sources` names under `destination`, on the same file system, and writes
// the index of all. Slices of one tensor may be spread over the sources, which are gone afterwards.
//
// Everything that can be checked is checked first: a damaged or missing source leaves everything as
// it is. After a crash the destination is the old checkpoint, none, or the new one.
Status MergeBundles(Env& env, const std::vector<std::string>& sources,
                    const std::string& destination, const MergeOptions& options = {});

}  // namespace penstock

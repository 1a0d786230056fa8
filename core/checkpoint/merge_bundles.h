// SPDX-License-Identifier: Apache-2.0
//
// MergeBundles: merges the checkpoints that the tasks of a cluster have written into one.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

struct MergeOptions {
  // If true, also deletes directories of the sources that the merge leaves empty.
  bool delete_old_directories = true;
  bool allow_missing = false;  // if true, skips sources that do not exist; at least one must exist
};

// Renames the data files of `sources` to names with the prefix `destination`, which must be on the
// same file system, and writes an index of all their tensors. The slices of one tensor may be in
// different sources. Removes the sources' index files.
//
// All checks come first: if a source is damaged or missing, no file changes. After a crash the
// destination holds the old checkpoint, none, or the new one.
Status MergeBundles(Env& env, const std::vector<std::string>& sources,
                    const std::string& destination, const MergeOptions& options = {});

}  // namespace penstock

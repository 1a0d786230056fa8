// SPDX-License-Identifier: Apache-2.0
//
// Makes checkpoints visible, and creates the directories and temporary names that this needs. All
// writers use this file.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/checkpoint/bundle_entry.h"

namespace penstock {

// Returns a unique path in the directory of `path`, so that two writers of one checkpoint do not
// write to the same files. The path never ends in ".index", so that a file left behind by a crash
// does not look like a checkpoint.
std::string TemporaryPath(Env& env, const std::string& path);

// Creates `directory` and its parents, durably, if they do not exist.
Status CreateDurableDirectories(Env& env, const std::string& directory);

// Publishes a checkpoint: checks that the index can be read, writes it to a temporary file, removes
// an older checkpoint with the same prefix, renames the data files, and then the index. `renames`
// are the old and new paths of the data files, which must be synced. Each step is durable before
// the next begins. A crash at any moment leaves the old checkpoint, none, or the new one, never a
// mixture.
Status PublishBundle(Env& env, const std::string& prefix, int num_shards,
                     const std::map<std::string, BundleEntry>& entries,
                     const std::vector<std::pair<std::string, std::string>>& renames);

}  // namespace penstock

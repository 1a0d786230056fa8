// SPDX-License-Identifier: Apache-2.0
//
// The one road by which a checkpoint becomes visible.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/checkpoint/bundle_entry.h"

namespace penstock {

// Beside `path`, and unique, so that two writers of one checkpoint do not write into each other's
// files. Never ends in ".index": what a crash leaves is not taken for a checkpoint.
std::string TemporaryPath(Env& env, const std::string& path);

// Makes `directory` and those above it where they do not exist, durably.
Status CreateDurableDirectories(Env& env, const std::string& directory);

// Checks that the index can be read, writes it beside, takes away one that stands under the same
// prefix, gives the data files their names (pairs of old and new paths; they are synced already),
// then the index its own, each step durable before the next. A crash at any moment leaves the old
// checkpoint, none, or the new one, never a mixture.
Status PublishBundle(Env& env, const std::string& prefix, int num_shards,
                     const std::map<std::string, BundleEntry>& entries,
                     const std::vector<std::pair<std::string, std::string>>& renames);

}  // namespace penstock

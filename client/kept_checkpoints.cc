// SPDX-License-Identifier: Apache-2.0
#include "client/kept_checkpoints.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/checkpoint/base_checkpoints.h"

namespace penstock::client {
namespace {

std::string PathOf(const std::string& directory, const std::string& name) {
  return absl::StartsWith(name, "/") ? name : StrCat(directory, "/", name);
}

}  // namespace

std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// Returns the name of the checkpoint on which `path` builds; "" if there is none. Also returns ""
// if `path` cannot be read, because then nothing can be restored from it.
std::string KeptCheckpoints::BaseNameOf(const std::string& path) {
  const auto known = bases_.find(path);
  if (known != bases_.end()) return known->second;
  const StatusOr<std::string> base = BaseOf(env_, path);
  const std::string name = base.ok() && !base->empty() ? SplitPath(*base).second : "";
  bases_[path] = name;
  return name;
}

// Returns whether to keep for ever a checkpoint that is not among the newest ones: if it builds on
// no other one and was saved at least `every_hours_` after the last one that is kept for ever or,
// if there is none yet, after the first one of the training. If so, stores its time in `state`.
bool KeptCheckpoints::IsPreserved(const std::string& path, double saved, CheckpointState& state) {
  if (every_hours_ <= 0) return false;
  double& last = state.last_preserved_timestamp;
  if (last <= 0) {
    last = saved;
    return false;
  }
  if (saved - last < every_hours_ * 3600 || !BaseNameOf(path).empty()) return false;
  last = saved;
  return true;
}

// Keeps in `state` only the `keep_` newest checkpoints and those that they build on. Returns the
// removed ones whose files are to be deleted: all except those that are kept for ever.
std::vector<std::string> KeptCheckpoints::DropOld(const std::string& directory,
                                                  CheckpointState& state) {
  std::vector<std::string> removed;
  const size_t count = state.all.size();
  if (keep_ == 0 || count <= static_cast<size_t>(keep_)) return removed;
  std::set<std::string> needed;
  CheckpointState kept{.latest = state.latest,
                       .last_preserved_timestamp = state.last_preserved_timestamp};
  std::vector<bool> keeps(count);
  for (size_t i = count; i-- > 0;) {  // the newest first, because checkpoints build on older ones
    const std::string name = SplitPath(state.all[i]).second;
    keeps[i] = i + static_cast<size_t>(keep_) >= count || needed.contains(name);
    if (keeps[i]) needed.insert(BaseNameOf(PathOf(directory, state.all[i])));
  }
  for (size_t i = 0; i < count; ++i) {
    const std::string path = PathOf(directory, state.all[i]);
    if (keeps[i]) {
      kept.all.push_back(state.all[i]);
      kept.timestamps.push_back(state.timestamps[i]);
    } else if (!IsPreserved(path, state.timestamps[i], kept)) {
      removed.push_back(path);
    }
  }
  state = std::move(kept);
  return removed;
}

Status KeptCheckpoints::Add(const std::string& checkpoint) {
  const auto [directory, name] = SplitPath(checkpoint);
  StatusOr<CheckpointState> state = ReadCheckpointState(env_, directory);
  if (absl::IsNotFound(state.status()) || absl::IsDataLoss(state.status())) {
    // Replaces a damaged file; the checkpoints that it named stay on the disk.
    state = CheckpointState();
  }
  RETURN_IF_ERROR(state.status());
  // Drops the cached base of an earlier checkpoint with this name.
  bases_.erase(PathOf(directory, name));
  const bool timed = state->timestamps.size() == state->all.size();
  CheckpointState next{.latest = name, .last_preserved_timestamp = state->last_preserved_timestamp};
  for (size_t i = 0; i < state->all.size(); ++i) {
    if (SplitPath(state->all[i]).second == name) continue;
    next.all.push_back(state->all[i]);
    next.timestamps.push_back(timed ? state->timestamps[i] : 0);
  }
  next.all.push_back(name);
  next.timestamps.push_back(env_.WallMicros() * 1e-6);
  const std::vector<std::string> old = DropOld(directory, next);
  RETURN_IF_ERROR(WriteCheckpointState(env_, directory, next));
  for (const std::string& each : old) Remove(each);
  return OkStatus();
}

// Removes the checkpoint's files. Ignores files that cannot be removed: they only take space,
// because the state file does not name them any more.
void KeptCheckpoints::Remove(const std::string& checkpoint) {
  bases_.erase(checkpoint);
  const auto [directory, name] = SplitPath(checkpoint);
  // Removes the index first, because an index without its data would look like a damaged
  // checkpoint.
  env_.RemoveFile(checkpoint + ".index").IgnoreError();
  const auto files = env_.ListDirectory(directory);
  if (!files.ok()) return;
  for (const std::string& file : *files) {
    if (absl::StartsWith(file, name + ".data-") || file == name + ".meta") {
      env_.RemoveFile(StrCat(directory, "/", file)).IgnoreError();
    }
  }
}

void KeptCheckpoints::RemoveTemporaries(const std::string& prefix) {
  const auto [directory, name] = SplitPath(prefix);
  const auto entries = env_.ListDirectory(directory);
  if (!entries.ok()) return;
  for (const std::string& entry : *entries) {
    if (!absl::StartsWith(entry, name + "-") || !absl::StrContains(entry, kTemporary)) continue;
    const std::string path = StrCat(directory, "/", entry);
    const auto files = env_.ListDirectory(path);
    if (!files.ok()) continue;
    for (const std::string& file : *files) env_.RemoveFile(StrCat(path, "/", file)).IgnoreError();
    env_.RemoveDirectory(path).IgnoreError();
  }
}

}  // namespace penstock::client

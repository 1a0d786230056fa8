// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/checkpoints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/checkpoint/base_checkpoints.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_state.h"

namespace penstock {
namespace {

// Returns the 1200 of "model.ckpt-1200"; -1 if there is no number.
int64_t NumberOf(string_view prefix) {
  const size_t dash = prefix.rfind('-');
  int64_t number = -1;
  if (dash == string_view::npos || !absl::SimpleAtoi(prefix.substr(dash + 1), &number)) return -1;
  return number;
}

std::string Join(const std::string& directory, const std::string& path) {
  return !path.empty() && path[0] == '/' ? path : StrCat(directory, "/", path);
}

// Returns the checkpoints that the state file lists, newest first, each once.
StatusOr<std::vector<std::string>> RecordedCheckpoints(Env& env, const std::string& directory) {
  const auto state = ReadCheckpointState(env, directory);
  // If there is no readable state file, the file names are used.
  if (absl::IsNotFound(state.status()) || absl::IsDataLoss(state.status())) {
    return std::vector<std::string>();
  }
  RETURN_IF_ERROR(state.status());
  std::vector<std::string> paths = {state->latest};
  paths.insert(paths.end(), state->all.rbegin(), state->all.rend());
  std::vector<std::string> prefixes;
  for (const std::string& path : paths) {
    std::string prefix = Join(directory, path);
    const bool known = std::find(prefixes.begin(), prefixes.end(), prefix) != prefixes.end();
    if (!path.empty() && !known) prefixes.push_back(std::move(prefix));
  }
  return prefixes;
}

// Reads every byte of one checkpoint.
Status VerifyFiles(Env& env, const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(env, prefix));
  RETURN_IF_ERROR(reader->CheckDataFiles());
  for (const auto& [name, entry] : reader->tensors()) RETURN_IF_ERROR(reader->Verify(name));
  return OkStatus();
}

}  // namespace

Status VerifyCheckpoint(Env& env, const std::string& prefix) {
  RETURN_IF_ERROR(VerifyFiles(env, prefix));
  ASSIGN_OR_RETURN(const std::vector<std::string> chain, ChainOf(env, prefix));
  for (const std::string& each : chain) {
    if (each != prefix) RETURN_IF_ERROR(VerifyFiles(env, each));
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> ListCheckpoints(Env& env, const std::string& directory) {
  ASSIGN_OR_RETURN(std::vector<std::string> prefixes, RecordedCheckpoints(env, directory));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, env.ListDirectory(directory));
  std::vector<std::string> others;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".index")) continue;
    std::string prefix = Join(directory, name.substr(0, name.size() - 6));
    if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end()) {
      others.push_back(std::move(prefix));
    }
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const auto& a, const auto& b) { return NumberOf(a) > NumberOf(b); });
  prefixes.insert(prefixes.end(), others.begin(), others.end());
  return prefixes;
}

StatusOr<NewestGood> FindNewestGood(Env& env, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> prefixes, ListCheckpoints(env, directory));
  NewestGood result;
  for (const std::string& prefix : prefixes) {
    Status status = VerifyCheckpoint(env, prefix);
    if (status.ok()) {
      result.prefix = prefix;
      return result;
    }
    result.skipped.push_back({prefix, std::move(status)});
  }
  return result;
}

}  // namespace penstock

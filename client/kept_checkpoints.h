// SPDX-License-Identifier: Apache-2.0
//
// KeptCheckpoints: decides which checkpoints of a training stay on the disk: the newest ones, the
// older ones that incremental checkpoints build on (core/checkpoint/base_checkpoints.h), and one
// every `every_hours` hours.
//
// The file "checkpoint" of a directory lists the checkpoints that stay, except those that stay only
// because of `every_hours`. Not thread-safe.
#pragma once

#include <map>
#include <string>

#include "core/base/env.h"
#include "core/checkpoint/checkpoint_state.h"

namespace penstock::client {

class KeptCheckpoints {
 public:
  // `keep`: the number of newest checkpoints to keep; 0: all. `every_hours`: the interval in hours
  // at which a checkpoint that builds on no other one is kept for ever; 0: none is.
  KeptCheckpoints(Env& env, int keep, double every_hours)
      : env_(env), keep_(keep), every_hours_(every_hours) {}

  // Adds a checkpoint that is complete on the disk, and deletes the files of the checkpoints that
  // are no longer kept. Ignores errors of the deletion.
  Status Add(const std::string& checkpoint);
  // Removes the directories of unfinished saves of "prefix-N", for every N. Ignores errors.
  void RemoveTemporaries(const std::string& prefix);

  // The suffix of "prefix-N" in the name of an unfinished save's directory.
  static constexpr char kTemporary[] = "_temp_";

 private:
  std::string BaseNameOf(const std::string& path);
  bool IsPreserved(const std::string& path, double saved, CheckpointState& state);
  std::vector<std::string> DropOld(const std::string& directory, CheckpointState& state);
  void Remove(const std::string& checkpoint);

  Env& env_;
  const int keep_;
  const double every_hours_;
  std::map<std::string, std::string>
      bases_;  // base's name ("" if none) by path, for the checkpoints read
};

// Splits "dir/name" into directory and name; the directory is "." if `path` has none.
std::pair<std::string, std::string> SplitPath(const std::string& path);

}  // namespace penstock::client

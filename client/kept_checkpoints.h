// SPDX-License-Identifier: Apache-2.0
//
// KeptCheckpoints: which checkpoints of a training stay on the disk: the newest ones, those that
// they build on (core/checkpoint/base_checkpoints.h), and one of every so many hours.
//
// The file "checkpoint" of a directory lists them. Not thread-safe.
#pragma once

#include <map>
#include <string>

#include "core/base/env.h"
#include "core/checkpoint/checkpoint_state.h"

namespace penstock::client {

class KeptCheckpoints {
 public:
  // `keep`: how many of the newest; 0: all. `every_hours`: a complete checkpoint of every so many
  // hours stays for good; 0: none.
  KeptCheckpoints(Env& env, int keep, double every_hours)
      : env_(env), keep_(keep), every_hours_(every_hours) {}

  // Enters a checkpoint that is complete on the disk, and removes those that are too many.
  Status Add(const std::string& checkpoint);
  // Removes what unfinished saves of "prefix-N" have left.
  void RemoveTemporaries(const std::string& prefix);

  // Part of the directory of an unfinished save, after "prefix-N".
  static constexpr char kTemporary[] = "_temp_";

 private:
  std::string BaseNameOf(const std::string& path);
  bool Preserve(const std::string& path, double saved, CheckpointState& state);
  std::vector<std::string> DropOld(const std::string& directory, CheckpointState& state);
  void Remove(const std::string& checkpoint);

  Env& env_;
  const int keep_;
  const double every_hours_;
  std::map<std::string, std::string> bases_;  // by path, where known
};

// "dir/name" in parts; the directory is "." if none is given.
std::pair<std::string, std::string> SplitPath(const std::string& path);

}  // namespace penstock::client

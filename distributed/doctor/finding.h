// SPDX-License-Identifier: Apache-2.0
//
// Finding: the result of one check of a cluster, and what to do about it.
#pragma once

#include <string>
#include <vector>

namespace penstock {

struct Finding {
  enum class Level { kOk, kWarning, kError };
  Level level = Level::kOk;
  std::string subject;  // the subject of the check: "/job:ps/task:0 at a:2222", "--checkpoint_dir"
  std::string what;     // the result, in one line
  std::string advice = {};
};
using Findings = std::vector<Finding>;

}  // namespace penstock

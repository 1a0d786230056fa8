// SPDX-License-Identifier: Apache-2.0
//
// Finding: one thing that was looked at before or while a cluster runs, and what to do about it.
#pragma once

#include <string>
#include <vector>

namespace penstock {

struct Finding {
  enum class Level { kOk, kWarning, kError };
  Level level = Level::kOk;
  std::string subject;  // "/job:ps/task:0 at a:2222", "--checkpoint_dir"
  std::string what;     // one line
  std::string advice = {};
};
using Findings = std::vector<Finding>;

}  // namespace penstock

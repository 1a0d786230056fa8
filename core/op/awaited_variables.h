// SPDX-License-Identifier: Apache-2.0
//
// The uninitialised variables that steps of this process have asked for. A client that waits until
// another client has initialised a variable asks for it again and again. Used for display only.
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

struct AwaitedVariable {
  std::string device, container, name;
  int64_t first_ns = 0, last_ns = 0;  // Env::NowNanos() of the first and the last question
  int64_t times = 0;
};

// Records that a step has asked whether the variable has a value, and that it has none. If a step
// asks more than a minute after the last question, its question counts as the first. With more than
// 1000 variables, forgets the one with the earliest first_ns.
void NoteAwaitedVariable(const std::string& device, const std::string& container,
                         const std::string& name, Env& env);

// Returns the recorded variables in order of device, container and name. Some of them may have got
// a value since.
std::vector<AwaitedVariable> AwaitedVariables();

}  // namespace penstock

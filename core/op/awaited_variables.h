// SPDX-License-Identifier: Apache-2.0
//
// Records which uninitialised variables the steps of this process have asked for. A client that
// waits until another client has initialised a variable runs such steps again and again. The task's
// report shows the records; nothing else uses them. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

struct AwaitedVariable {
  std::string device, container, name;
  int64_t first_ns = 0, last_ns = 0;  // Env::NowNanos() of the first and the last request
  int64_t times = 0;                  // the number of requests since first_ns
};

// Records that a step has asked whether the variable has a value, and that it has none. After a
// pause of more than a minute, counting starts again: first_ns is then the time of this request.
// When more than 1000 variables are recorded, drops the one with the earliest first_ns.
void NoteAwaitedVariable(const std::string& device, const std::string& container,
                         const std::string& name, Env& env);

// Returns the recorded variables, sorted by device, container and name. A variable stays recorded
// after it has been initialised.
std::vector<AwaitedVariable> AwaitedVariables();

}  // namespace penstock

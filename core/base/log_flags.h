// SPDX-License-Identifier: Apache-2.0
//
// Log flags for long-running programs: servers and trainings.
#pragma once

#include <CLI/App.hpp>

namespace penstock {

// Adds --log_format and --log_level, which override the environment. An invalid value, also one in
// the environment, is a CLI::ParseError. Uses the app's preparse_callback.
void AddLogFlags(CLI::App& app);

// Puts this process's log settings into the environment, so that programs that it starts use them.
void PassLogOptionsOn();

}  // namespace penstock

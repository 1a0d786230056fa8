// SPDX-License-Identifier: Apache-2.0
//
// Log flags for long-running programs: servers and trainings.
#pragma once

#include <CLI/App.hpp>

namespace penstock {

// Adds --log_format and --log_level, which override the environment. An invalid value, in a flag or
// in the environment, makes app.parse throw a CLI::ParseError. Uses the app's preparse_callback.
void AddLogFlags(CLI::App& app);

// Puts this process's log settings into the environment, so that child processes use them.
void ExportLogOptions();

}  // namespace penstock

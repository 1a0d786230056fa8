// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `penstock`. Each adds itself, with its help, to the program's parser, and sets
// `*exit_code` when it runs.
//
// Exit codes: 0 done; 1 it failed, with one line on stderr that says why; 2 the command line is
// wrong.
#pragma once

#include <string>

#include "core/base/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace penstock {

void AddCheckpointCommand(CLI::App& app, int* exit_code);
void AddConvertCommand(CLI::App& app, int* exit_code);
void AddCostCommand(CLI::App& app, int* exit_code);
void AddDoctorCommand(CLI::App& app, int* exit_code);
void AddGraphCommand(CLI::App& app, int* exit_code);
void AddModelCommand(CLI::App& app, int* exit_code);
void AddOpsCommand(CLI::App& app, int* exit_code);
void AddPlaceCommand(CLI::App& app, int* exit_code);
void AddResetCommand(CLI::App& app, int* exit_code);
void AddRunCommand(CLI::App& app, int* exit_code);
void AddServerCommand(CLI::App& app, int* exit_code);
void AddShutdownCommand(CLI::App& app, int* exit_code);
void AddStatsCommand(CLI::App& app, int* exit_code);
void AddStatusCommand(CLI::App& app, int* exit_code);
void AddTopCommand(CLI::App& app, int* exit_code);
void AddTraceCommand(CLI::App& app, int* exit_code);
void AddVersionCommand(CLI::App& app, int* exit_code);
void AddWhatIfCommand(CLI::App& app, int* exit_code);
void AddWhyCommand(CLI::App& app, int* exit_code);

// Returns 0 if `status` is OK. Otherwise prints "penstock: " and the error (logs it if the log is
// JSON), and returns 1.
int ExitCodeOf(const Status& status);

}  // namespace penstock

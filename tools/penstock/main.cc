// SPDX-License-Identifier: Apache-2.0
//
// The `penstock` command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "core/base/log.h"
#include "tools/penstock/commands.h"

namespace penstock {

int ExitCodeOf(const Status& status) {
  if (status.ok()) return 0;
  const std::string message(status.message());
  if (CurrentLogOptions().format == LogFormat::kJson) {
    Log({.level = LogLevel::kError, .event = "failed", .text = message});
  } else {
    std::fprintf(stderr, "penstock: %s\n", message.c_str());
  }
  return 1;
}

namespace {

int Main(int argc, char** argv) {
  CLI::App app("Penstock: a dataflow-graph runtime with a parameter-server cluster.", "penstock");
  app.footer("`penstock COMMAND --help` tells more about a command.");
  app.require_subcommand(1);
  int exit_code = 0;
  AddServerCommand(app, &exit_code);
  AddRunCommand(app, &exit_code);
  AddDoctorCommand(app, &exit_code);
  AddStatusCommand(app, &exit_code);
  AddStatsCommand(app, &exit_code);
  AddTopCommand(app, &exit_code);
  AddWhyCommand(app, &exit_code);
  AddTraceCommand(app, &exit_code);
  AddResetCommand(app, &exit_code);
  AddShutdownCommand(app, &exit_code);
  AddOpsCommand(app, &exit_code);
  AddGraphCommand(app, &exit_code);
  AddPlaceCommand(app, &exit_code);
  AddCostCommand(app, &exit_code);
  AddWhatIfCommand(app, &exit_code);
  AddCheckpointCommand(app, &exit_code);
  AddModelCommand(app, &exit_code);
  AddConvertCommand(app, &exit_code);
  AddVersionCommand(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::string command = "penstock", what = error.what();
    for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
    // If the command is unknown, CLI11 only reports that a command is missing.
    const auto unknown = app.remaining();
    if (app.get_subcommands().empty() && !unknown.empty()) {
      what = "there is no " + std::string(unknown.front()[0] == '-' ? "flag" : "command") + " '" +
             unknown.front() + "'";
    }
    std::fprintf(stderr, "penstock: %s; `%s --help` tells what there is\n", what.c_str(),
                 command.c_str());
    return 2;
  }
  return exit_code;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }

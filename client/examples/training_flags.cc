// SPDX-License-Identifier: Apache-2.0
#include "client/examples/training_flags.h"

#include <utility>

namespace penstock::examples {

void AddCount(CLI::App& app, const char* name, int64_t& value, const char* about) {
  app.add_option(name, value, about)
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
}

void AddPlacementFlag(CLI::App& app, std::string& placement) {
  app.add_option("--placement", placement,
                 "auto: the master places the nodes on the tasks by predicted step times, and the "
                 "chief runs the steps; client: the program chooses the devices")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "client"}));
}

std::optional<int> ParseFlags(const char* program, CLI::App& app, int argc, char** argv,
                              TaskConfig* task) {
  ClusterFlags cluster;
  AddClusterFlags(app, &cluster);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return Report(program, InvalidArgument(error.what(), "; --help lists the flags"), kMistake);
  }
  StatusOr<TaskConfig> found = FindTask(app, cluster);
  if (!found.ok()) return Report(program, found.status(), kMistake);
  *task = *std::move(found);
  return std::nullopt;
}

}  // namespace penstock::examples

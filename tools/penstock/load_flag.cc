// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/load_flag.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/op/load_library.h"

namespace penstock {
namespace {

void Load(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const Status loaded = LoadLibrary(path).status();
    if (!loaded.ok()) throw CLI::ValidationError("--load", std::string(loaded.message()));
  }
}

}  // namespace

void AddLoadFlag(CLI::App& command) {
  command
      .add_option_function<std::vector<std::string>>(
          "--load", Load,
          "Load the ops of these libraries (docs/custom-ops.md); may be repeated. The environment "
          "variable PENSTOCK_LOAD names further libraries")
      ->delimiter(',')
      // --load takes one argument: `ops --load x.so MatMul` has one library
      ->allow_extra_args(false)
      ->type_name("LIBRARY,...");
  command.parse_complete_callback([] {
    const Status loaded = LoadLibrariesOfEnvironment();
    if (!loaded.ok()) throw CLI::ValidationError(std::string(loaded.message()));
  });
}

void PassLoadedLibrariesOn() {
  const std::string paths =
      absl::StrJoin(LoadedLibraries(), ",",
                    [](std::string* out, const OpLibrary& library) { *out += library.path; });
  if (!paths.empty()) setenv("PENSTOCK_LOAD", paths.c_str(), 1);
}

}  // namespace penstock

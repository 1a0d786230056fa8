// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>

#include "distributed/transport/verbs/settings.h"

namespace penstock {

void AddVerbsFlags(CLI::App& app) {
  for (const VerbsSettingInfo& info : AllVerbsSettings()) {
    const std::string name = info.name;
    app.add_option_function<std::string>(
           VerbsFlag(name),
           [name](const std::string& value) {
             setenv(VerbsVariable(name).c_str(), value.c_str(), /*overwrite=*/1);
           },
           StrCat(info.description, " (", info.range, "; ", VerbsVariable(name), ")"))
        ->check([name](const std::string& value) {
          // CLI11 adds the name of the flag itself.
          const std::string why(CheckVerbsSetting(name, value).message());
          const size_t named = why.find("): ");
          return named == std::string::npos ? why : why.substr(named + 3);
        })
        ->type_name("")
        ->group("RDMA");
  }
}

}  // namespace penstock

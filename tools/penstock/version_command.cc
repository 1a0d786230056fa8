// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>

#include "core/op/registry.h"
#include "tools/penstock/commands.h"

namespace penstock {

constexpr char kVersion[] = "0.1.0";

void AddVersionCommand(CLI::App& app, int* exit_code) {
  CLI::App* version = app.add_subcommand("version", "Print the version and what was built in");
  version->callback([] {
#if defined(PENSTOCK_CUDA)
    const char* cuda = "with CUDA";
#else
    const char* cuda = "without CUDA";
#endif
    std::printf("penstock %s, %zu ops, %s\n", kVersion, Registry::Global().ops().size(), cuda);
  });
}

}  // namespace penstock

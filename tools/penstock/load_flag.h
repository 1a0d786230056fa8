// SPDX-License-Identifier: Apache-2.0
//
// The flag --load=LIBRARY,...: op libraries (docs/custom-ops.md) for a command, in addition to the
// built-in ops. They are loaded while the command line is parsed, before the command runs, as are
// the libraries in the environment variable PENSTOCK_LOAD. A library that cannot be loaded is an
// error of the command line.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace penstock {

void AddLoadFlag(CLI::App& command);

// Sets PENSTOCK_LOAD to the loaded libraries, for programs that this one starts.
void PassLoadedLibrariesOn();

}  // namespace penstock

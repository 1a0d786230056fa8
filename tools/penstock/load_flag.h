// SPDX-License-Identifier: Apache-2.0
//
// The flag --load=LIBRARY,...: op libraries (docs/custom-ops.md) for a command, in addition to the
// built-in ops. Parsing the command line loads them before the command runs, together with the
// libraries in the environment variable PENSTOCK_LOAD. A library that cannot be loaded is an error
// of the command line.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace penstock {

void AddLoadFlag(CLI::App& command);

// Sets PENSTOCK_LOAD to the loaded libraries, for programs that this one starts.
void PassLoadedLibrariesOn();

}  // namespace penstock

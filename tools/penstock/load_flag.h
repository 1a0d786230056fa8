// SPDX-License-Identifier: Apache-2.0
//
// --load=LIBRARY,...: op libraries (docs/custom-ops.md) that a command knows besides what is built
// in. They are loaded while the command line is read, before the command runs; those of
// PENSTOCK_LOAD in the environment as well. A library that is refused is a mistake in the command
// line.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace penstock {

void AddLoadFlag(CLI::App& command);

// Names the libraries that are loaded in PENSTOCK_LOAD, for the programs that this one starts.
void PassLoadedLibrariesOn();

}  // namespace penstock

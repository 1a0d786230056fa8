// SPDX-License-Identifier: Apache-2.0
//
// LoadLibrary: adds the ops and kernels of an op library (op_library.h; docs/custom-ops.md) to
// those of this process.
//
//   ASSIGN_OR_RETURN(const OpLibrary triple, LoadLibrary("libtriple.so"));
//   Program program;                        // knows Triple
//   const Output y = Call("Triple", {x});
//
// Load libraries before you create a Program, a Session or a Server: each knows only the ops that
// were registered when it was created. A library stays loaded until the process ends.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct OpLibrary {
  std::string path;              // the file's path: absolute, with symbolic links resolved
  std::vector<std::string> ops;  // the ops that the library declares, sorted by name
  // The ops for which the library has kernels, sorted by name. Not all of them need be in `ops`:
  // the library may add kernels for ops that the process had before.
  std::vector<std::string> kernels;
};

// Loads the library in the file `path`, which may be relative to the working directory. If the
// library is loaded already, returns the same result as before. Thread-safe. Errors:
//   NotFound: there is no such file.
//   FailedPrecondition: the library was built for another version of Penstock, or with other
//     options (none of its code has run), or an initialiser of a library has called LoadLibrary.
//   InvalidArgument: the file is not an op library, or the library declares nothing, contradicts
//     itself, or does not link.
//   AlreadyExists: the library declares an op that the process has, or a kernel for an op, device
//     and types for which the process has one; the error names them.
// After the last two errors the library's initialisers may have run, but none of its ops is
// registered.
StatusOr<OpLibrary> LoadLibrary(const std::string& path);

// Loads the libraries that the environment variable PENSTOCK_LOAD lists, separated by commas. Stops
// at the first error of LoadLibrary and returns it. A Server calls this when it is created.
Status LoadLibrariesOfEnvironment();

// Returns the loaded libraries, in the order in which they were loaded.
std::vector<OpLibrary> LoadedLibraries();

}  // namespace penstock

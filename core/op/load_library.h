// SPDX-License-Identifier: Apache-2.0
//
// LoadLibrary: adds the ops and kernels of an op library (op_library.h; docs/custom-ops.md) to
// those of this process.
//
//   ASSIGN_OR_RETURN(const OpLibrary triple, LoadLibrary("libtriple.so"));
//   Program program;                        // knows Triple
//   const Output y = Call("Triple", {x});
//
// Load libraries first: a Program, a Session or a Server knows only the ops that were registered
// when it was created. A library stays loaded until the process ends.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct OpLibrary {
  std::string path;              // the file's path: absolute, with symbolic links resolved
  std::vector<std::string> ops;  // the ops that it declares, sorted by name
  // The ops for which it has kernels, sorted; the process may have had these ops before.
  std::vector<std::string> kernels;
};

// Loads the library in the file `path`, relative to the working directory. If it is loaded already,
// returns the same result as before. Thread-safe. Errors:
//   NotFound: there is no such file.
//   FailedPrecondition: the library was built for another version of Penstock, or with other
//     options (none of its code has run), or an initialiser of a library has called LoadLibrary.
//   InvalidArgument: it is not an op library, declares nothing, contradicts itself, or does not
//     link.
//   AlreadyExists: it declares an op that the process has, or a kernel for an op, device and types
//     for which the process has one; the error names them.
// After the last two errors its initialisers may have run, but none of its ops is registered.
StatusOr<OpLibrary> LoadLibrary(const std::string& path);

// Loads the libraries in the environment variable PENSTOCK_LOAD, separated by commas, up to the
// first that LoadLibrary refuses; returns its error. A Server calls this when it is created.
Status LoadLibrariesOfEnvironment();

// Returns the loaded libraries in the order of loading.
std::vector<OpLibrary> LoadedLibraries();

}  // namespace penstock

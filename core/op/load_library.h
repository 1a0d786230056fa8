// SPDX-License-Identifier: Apache-2.0
//
// LoadLibrary: adds the ops and kernels of an op library (op_library.h; docs/custom-ops.md) to
// those of this process.
//
//   ASSIGN_OR_RETURN(const OpLibrary triple, LoadLibrary("libtriple.so"));
//   Program program;                        // knows Triple
//   const Output y = Call("Triple", {x});
//
// Load before making what uses the ops: a Program, a Session and a Server know the ops that there
// were when they were made. A library stays loaded until the process ends.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct OpLibrary {
  std::string path;              // of the file, absolute, without links
  std::vector<std::string> ops;  // that it declares, sorted by name
  // The ops for which it has kernels, sorted; they may be ops of this process.
  std::vector<std::string> kernels;
};

// Loads the library in the file `path`, which is relative to the working directory. A library that
// is loaded already is not loaded again; the call returns the same. Thread-safe. Errors:
//   NotFound            there is no such file
//   FailedPrecondition  it was built for another version of Penstock, or in another way: nothing of
//                       it has run. Or an initialiser of a library makes this call
//   InvalidArgument     it is no op library, declares nothing, contradicts itself, or does not link
//   AlreadyExists       it declares an op that the process has, or a kernel for an op, device and
//                       types for which the process has one; the error names them
// After the last two its initialisers may have run, but none of its ops is there.
StatusOr<OpLibrary> LoadLibrary(const std::string& path);

// Loads those that the environment variable PENSTOCK_LOAD names, separated by commas. A Server does
// so when it is created.
Status LoadLibrariesOfEnvironment();

// Those that are loaded, in the order of loading.
std::vector<OpLibrary> LoadedLibraries();

}  // namespace penstock

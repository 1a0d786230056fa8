// SPDX-License-Identifier: Apache-2.0
//
// Declares the functions of declarations.cc that load_library.cc calls. declarations.cc belongs to
// //core/op; this header does not, because every compilation that depends on //core/op would then
// depend on it.
#pragma once

#include <utility>
#include <vector>

#include "core/op/registry.h"

namespace penstock {

using Declarations = std::pair<std::vector<OpDef>, std::vector<KernelDef>>;

// From now on, declarations by static initialisers on this thread (those that dlopen runs) are
// collected separately.
void CollectDeclarations();
// Stops collecting and returns the collected declarations.
Declarations TakeDeclarations();

// Adds ops and kernels to the registry that Registry::Global() returns from now on. Registries that
// it returned before do not change. InvalidArgument if the declarations contradict each other or
// registered ones. AlreadyExists if a node would match an added and a registered kernel. After an
// error nothing has changed. One call at a time.
Status ExtendGlobalRegistry(const Declarations& added);

}  // namespace penstock

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

// Starts to collect the declarations that static initialisers make on this thread, while dlopen
// runs them. Until TakeDeclarations, they are not added to the lists of linked-in declarations.
void CollectDeclarations();
// Stops collecting, and returns the declarations collected on this thread.
Declarations TakeDeclarations();

// Makes a registry with the present ops and kernels and the added ones, which Registry::Global()
// returns from now on. Registries that it returned before do not change. InvalidArgument if the
// declarations contradict each other or registered ones. AlreadyExists if a node would match an
// added and a registered kernel. An error changes nothing. Calls must not overlap.
Status ExtendGlobalRegistry(const Declarations& added);

}  // namespace penstock

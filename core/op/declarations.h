// SPDX-License-Identifier: Apache-2.0
//
// The part of declarations.cc that load_library.cc calls. That file is a part of //core/op, this
// header is not: it would become an input of every compilation that stands on //core/op.
#pragma once

#include <utility>
#include <vector>

#include "core/op/registry.h"

namespace penstock {

using Declared = std::pair<std::vector<OpDef>, std::vector<KernelDef>>;

// From now on, what static initialisers declare on this thread is kept apart: those that dlopen
// runs.
void CollectDeclarations();
// Ends that and returns what was declared.
Declared TakeDeclarations();

// Adds ops and kernels to the registry that Registry::Global() returns from now on. The one that it
// returned before stays as it is. InvalidArgument if the declarations contradict
// themselves or what there is, AlreadyExists if some node fits an added kernel and one that there
// is; then nothing changes. One call at a time.
Status ExtendGlobalRegistry(const Declared& added);

}  // namespace penstock

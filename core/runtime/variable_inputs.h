// SPDX-License-Identifier: Apache-2.0
//
// Reads the variables behind inputs that arrive over ref edges. Private to this folder.
#pragma once

#include "core/runtime/iteration.h"

namespace penstock {

// If a node with kReadsVariables wants values, replaces the handles among its inputs by the values
// of their variables. Internal if a handle refers to no variable, or to one of another type.
Status ReadVariables(Iteration& it, const Executable::Item& item);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Reads the variables behind inputs that arrive over ref edges. Private to this folder.
#pragma once

#include "core/runtime/iteration.h"

namespace penstock {

// Replaces each variable handle that the node takes by value (kReadsVariables) by the value of the
// variable. FailedPrecondition if a variable has no value yet. Internal if a handle refers to no
// variable, or to one of another type.
Status ReadVariables(Iteration& it, const Executable::Item& item);

}  // namespace penstock

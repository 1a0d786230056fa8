// SPDX-License-Identifier: Apache-2.0
//
// Inputs that come over ref edges: the executor reads the variable behind the handle. Private to
// this folder.
#pragma once

#include "core/runtime/iteration.h"

namespace penstock {

// Replaces the handles among the inputs of a node that is kReadsVariables by the values of their
// variables, if the node wants values. Internal if a handle leads to no variable, or to one of
// another type.
Status ReadVariables(Iteration& it, const Executable::Item& item);

}  // namespace penstock

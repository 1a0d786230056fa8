// SPDX-License-Identifier: Apache-2.0
//
// Computes which outputs of a control-flow node are alive. Such nodes only move values, so the
// executor runs them itself. Private to this folder. Thread-safe: no state.
#pragma once

#include "core/runtime/iteration.h"

namespace penstock {

// Moves the inputs of a node of control flow, which is not dead, to its outputs. InvalidArgument if
// what chooses the output is no scalar.
Status ComputeFlow(Iteration& it, const Executable::Item& item, Tensor* outputs);

// Returns the error of a _Fetch whose input is dead: it names the branch not taken.
Status DeadFetch(const Node& fetch);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Moves the values of control-flow nodes, and decides which of their outputs are alive. Such nodes
// only move values, so the executor runs them itself. Private to this folder. Thread-safe, because
// the functions have no state.
#pragma once

#include "core/runtime/iteration.h"

namespace penstock {

// Moves the inputs of a live control-flow node to its outputs. InvalidArgument if the input that
// selects the output, or the condition of a loop, is not a scalar.
Status ComputeFlow(Iteration& it, const Executable::Item& item, Tensor* outputs);

// Returns the error of a _Fetch whose input is dead: it names the input, and the nearest Switch or
// _Recv before it, if there is one.
Status DeadFetch(const Node& fetch);

}  // namespace penstock

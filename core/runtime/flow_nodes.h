// SPDX-License-Identifier: Apache-2.0
//
// Runs control-flow nodes: moves their values, and decides which of their outputs are alive. These
// nodes have no kernels, because they only move values. Private to this folder. Thread-safe,
// because the functions have no state.
#pragma once

#include "core/runtime/iteration.h"

namespace penstock {

// Moves the inputs of a live control-flow node to its outputs. InvalidArgument if the input that
// selects the output (of a Switch), or the condition of a loop, is not a scalar.
Status ComputeFlow(Iteration& it, const Executable::Item& item, Tensor* outputs);

// Returns the error of a _Fetch whose input is dead: it names the input, and the nearest Switch or
// _Recv before it, if there is one.
Status DeadFetchError(const Node& fetch);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// For the tests of this folder: a registry of a few dozen ops without kernels, with every form of
// inputs, outputs and attributes, and functions that print graphs.
#pragma once

#include <string>

#include "core/graph/graph.h"
#include "core/op/registry.h"

namespace penstock {

const Registry& TestOps();

// Returns "c = AddV2(a, b:1, ^d)", one line per node, in order of id.
std::string Print(const Graph& graph);
// Returns the line of one node, without its name.
std::string Print(const Node& node);

}  // namespace penstock

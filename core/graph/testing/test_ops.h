// SPDX-License-Identifier: Apache-2.0
//
// A registry of a few dozen ops without kernels, of every shape that a graph can meet, and a way to
// see graphs: what the tests of this folder build with.
#pragma once

#include <string>

#include "core/graph/graph.h"
#include "core/op/registry.h"

namespace penstock {

const Registry& TestOps();

// "c = AddV2(a, b:1, ^d)", one line per node, in order of id.
std::string Print(const Graph& graph);
// The same of one node, without the name.
std::string Print(const Node& node);

}  // namespace penstock

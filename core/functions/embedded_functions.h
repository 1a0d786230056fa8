// SPDX-License-Identifier: Apache-2.0
//
// EmbedFunctions: nodes whose kernels call functions while they run (tf.data's ops, which call one
// for each element) carry those functions in an attribute, so that such a node means the same
// wherever it is sent, and no later layer needs a library. core/callable makes them run.
#pragma once

#include "core/base/status.h"

namespace tensorflow {
class FunctionDefLibrary;
class GraphDef;
}  // namespace tensorflow

namespace penstock {

// A serialized FunctionDefLibrary: every function that the node's attributes name, and those that
// these call.
inline constexpr char kFunctionsAttr[] = "_functions";

// Returns whether EmbedFunctions would change `graph`, by its own library.
bool HoldsFunctions(const tensorflow::GraphDef& graph);
// Adds kFunctionsAttr to each node of `graph` that names a function of `library` in an attribute
// and is no call that core/functions inlines. ResourceExhausted where that would take more memory
// than a graph may have. Thread-safe.
Status EmbedFunctions(const tensorflow::FunctionDefLibrary& library, tensorflow::GraphDef* graph);

}  // namespace penstock

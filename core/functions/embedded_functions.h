// SPDX-License-Identifier: Apache-2.0
//
// Nodes whose kernels call functions while they run (tf.data's ops, which call one for each
// element) carry those functions in an attribute, which InlineFunctions adds: so such a node means
// the same wherever it is sent, and no later layer needs a library. core/callable makes them run.
#pragma once

namespace penstock {

// A serialized FunctionDefLibrary: every function that the node's attributes name, and those that
// these call.
inline constexpr char kFunctionsAttr[] = "_functions";

}  // namespace penstock

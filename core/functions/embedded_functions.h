// SPDX-License-Identifier: Apache-2.0
//
// The attribute that holds the functions which a node's kernel calls while it runs; tf.data's ops
// call one for each element. InlineFunctions adds it to such nodes, so that later layers need no
// library. core/callable runs the functions.
#pragma once

namespace penstock {

// A serialized FunctionDefLibrary: every function that the node's attributes name, the functions
// that these call, and the gradient functions that a client has registered for any of them.
inline constexpr char kFunctionsAttr[] = "_functions";

}  // namespace penstock

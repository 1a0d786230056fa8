// SPDX-License-Identifier: Apache-2.0
//
// The name of an attribute of nodes that group several independent results, such as the results of
// a conditional.
#pragma once

namespace penstock {

// A bool. If true, output i of the node is its input i. A step that needs only some of the outputs
// runs only the nodes from which the inputs with the same indices are computed. The node's control
// inputs run only in steps that need a node with a control edge from this node.
inline constexpr char kIndependentResultsAttr[] = "_results_apart";

}  // namespace penstock

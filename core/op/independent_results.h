// SPDX-License-Identifier: Apache-2.0
//
// An attribute of a node that stands for several independent results, such as those of a
// conditional.
#pragma once

namespace penstock {

// A bool. If true, output i of the node is its input i. A step that needs only some outputs runs
// only the nodes that the inputs with the same indices need. The node's control inputs run only for
// steps that need a node with a control edge from this node.
inline constexpr char kIndependentResultsAttr[] = "_results_apart";

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// An attribute of a node that stands for several independent results, such as those of a
// conditional.
#pragma once

namespace penstock {

// A bool. If true, output i of the node is its input i. A step that needs only some of the outputs
// needs only those inputs. The node's control inputs are needed only by nodes with a control edge
// from it.
inline constexpr char kResultsApartAttr[] = "_results_apart";

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// An attribute of a node that stands for several independent results, such as those of a
// conditional.
#pragma once

namespace penstock {

// Bool. If true, output i of the node is its input i; a step that needs only some of the outputs
// needs only those inputs, and what the node waits for is needed only by nodes that wait for it.
inline constexpr char kResultsApartAttr[] = "_results_apart";

}  // namespace penstock

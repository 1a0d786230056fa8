// SPDX-License-Identifier: Apache-2.0
//
// Writes single nodes as NodeDefs. Private to this folder.
#pragma once

#include "core/graph/graph.h"

namespace tensorflow {
class NodeDef;
}  // namespace tensorflow

namespace penstock {

// With kLeftOut, the attribute "value" gets the type of the node's tensor, but no elements.
enum class ConstantValue { kWritten, kLeftOut };

void ExportNode(const Node& node, ConstantValue value, tensorflow::NodeDef* def);

}  // namespace penstock

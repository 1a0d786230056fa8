// SPDX-License-Identifier: Apache-2.0
//
// Converts a MetaGraphDef into a MetaGraph; private to this folder.
#pragma once

#include "core/meta_graph/meta_graph.h"

namespace tensorflow {
class MetaGraphDef;
}

namespace penstock {

// Converts `def`, and adds its nodes to `graph`; after an error `graph` is unchanged.
StatusOr<MetaGraph> MetaGraphFromProto(const tensorflow::MetaGraphDef& def, Graph* graph);

}  // namespace penstock

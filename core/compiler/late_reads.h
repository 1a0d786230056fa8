// SPDX-License-Identifier: Apache-2.0
//
// When variables behind reference edges are read. In TensorFlow such a value shares the variable's
// memory, so whoever comes after an update sees what the update left, even by way of an Identity
// that ran before it; programs rely on that (SyncReplicasOptimizer puts the global step into its
// token queue after the update, through a read that nothing orders). A snapshot taken by that
// Identity would be the old value.
#pragma once

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace penstock {

// Where the graph says that a consumer of such a value comes after an update of the variable, and
// that what passes the value on (Identity, Switch, Enter, ...) does not, the consumer is connected
// to the reference, so that it reads the variable itself. All others keep their snapshot: what is
// not ordered is any order's. On the variable's own device only. REQUIRES a placed graph.
Status ReadVariablesLate(Graph* graph);

}  // namespace penstock

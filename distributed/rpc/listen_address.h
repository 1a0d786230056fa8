// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {

// Whether this process could listen there now; InvalidArgument says why not, in one line.
Status CheckListenAddress(const HostPort& address);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Finds the address that a server listens at. By default it is the task's address in the cluster.
// But that address is for the peers, and need not be one of this host: it may be a name that
// resolves later, or the address of a Kubernetes Service or of a gateway. Then only its port is
// used.
#pragma once

#include <string>

#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {

// Returns the address at which the task listens whose address in the cluster is `own`.
//
// `listen_address` is "HOST" or "HOST:PORT" (an IPv6 host stands in brackets), the port by default
// that of `own`. If it is empty: at `own`, if its host is "localhost" or a loopback address, or
// resolves to addresses of this host's other interfaces and to nothing else; else on all
// interfaces. (Debian gives a host's own name a loopback address: peers see another.) Waits for the
// resolver for 5 s at most.
//
// InvalidArgument says what is wrong with --listen_address.
StatusOr<HostPort> FindListenAddress(const HostPort& own, const std::string& listen_address);

// Whether this process could listen there now; InvalidArgument says why not, in one line.
Status CheckListenAddress(const HostPort& address);

}  // namespace penstock

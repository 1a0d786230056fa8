// SPDX-License-Identifier: Apache-2.0
//
// Finds the address that a server listens at. By default it is the task's address in the cluster.
// But peers use that address, and it need not be an address of this host: it may be a name that
// resolves later, or the address of a Kubernetes Service or a gateway. Then only its port is
// used.
#pragma once

#include <string>

#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {

// Returns the address at which a task listens; `own` is the task's address in the cluster.
//
// `listen_address` is "HOST" or "HOST:PORT" (an IPv6 host stands in brackets); the default port is
// that of `own`. If it is empty, the task listens at `own` if the host of `own` is "localhost" or a
// loopback address, or if it resolves only to addresses of this host's other interfaces. Else the
// task listens on all interfaces. (Debian gives a host's own name a loopback address, but peers
// resolve it to another one.) Waits for the resolver for at most 5 s.
//
// InvalidArgument says what is wrong with --listen_address.
StatusOr<HostPort> FindListenAddress(const HostPort& own, const std::string& listen_address);

// Returns OK if this process could listen at `address` now, else InvalidArgument, which says why
// in one line.
Status CheckListenAddress(const HostPort& address);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Where a server listens. Peers call a task at the address that the cluster has for it, which need
// not be one of this host: a name that resolves later, or the address of a Kubernetes Service or of
// a gateway. So that address decides about the port only, as in TensorFlow.
#pragma once

#include <string>

#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {

// Where the task whose address in the cluster is `own` listens.
//
// `listen_address` is "HOST" or "HOST:PORT" (an IPv6 host stands in brackets), the port by default
// that of `own`. Where it is empty: all interfaces; only the loopback interface where `own` is
// "localhost" or a loopback address, because no other host could use that address.
//
// InvalidArgument says what is wrong with --listen_address.
StatusOr<HostPort> FindListenAddress(const HostPort& own, const std::string& listen_address);

// Whether this process could listen there now; InvalidArgument says why not, in one line.
Status CheckListenAddress(const HostPort& address);

}  // namespace penstock

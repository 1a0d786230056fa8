// SPDX-License-Identifier: Apache-2.0
//
// WaitingKeys: lists the rendezvous keys for which a step still waits, for its error message.
#pragma once

#include <vector>

#include "core/runtime/rendezvous.h"

namespace penstock {

// Returns the keys for which a receiver waits in `local`, sorted. REQUIRES:
// NewLocalRendezvous made `local`. Thread-safe.
std::vector<RendezvousKey> WaitingKeys(const Rendezvous& local);

}  // namespace penstock

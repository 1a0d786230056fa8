// SPDX-License-Identifier: Apache-2.0
//
// WaitingKeys: lists the rendezvous keys that a step still waits for, for its error message.
#pragma once

#include <vector>

#include "core/runtime/rendezvous.h"

namespace penstock {

// Returns the keys with a waiting receiver in `local`, in the order of keys. REQUIRES:
// NewLocalRendezvous made `local`. Thread-safe.
std::vector<RendezvousKey> WaitingKeys(const Rendezvous& local);

}  // namespace penstock

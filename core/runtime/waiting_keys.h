// SPDX-License-Identifier: Apache-2.0
//
// WaitingKeys: what a step still waits for, for its error message.
#pragma once

#include <vector>

#include "core/runtime/rendezvous.h"

namespace penstock {

// Returns the keys whose receivers wait at `local`, in their order. REQUIRES that
// NewLocalRendezvous has made `local`. Thread-safe.
std::vector<RendezvousKey> WaitingKeys(const Rendezvous& local);

}  // namespace penstock

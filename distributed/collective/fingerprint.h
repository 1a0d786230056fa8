// SPDX-License-Identifier: Apache-2.0
//
// Hashes by which tasks check that they execute the same collective: a mismatch becomes an error,
// not a wrong sum.
#pragma once

#include <cstdint>
#include <string>

#include "core/runtime/collective.h"

namespace penstock::collective {

// Returns `hash` with a number, or a text, mixed in.
uint64_t Mix(uint64_t hash, uint64_t value);
uint64_t MixText(uint64_t hash, const std::string& text);

// Returns a hash of the fields that all ranks of an execution have to agree on. The shape is one of
// them, also for a broadcast: receiving ranks know it from their node.
uint16_t FingerprintOf(const CollectiveCall& call);
// Returns the kind, type and shape of the call as text, for example "all-reduce of float[3]".
std::string Describe(const CollectiveCall& call);

}  // namespace penstock::collective

// SPDX-License-Identifier: Apache-2.0
//
// Hashes by which tasks find out whether they mean the same: what does not fit is an error, not a
// wrong sum.
#pragma once

#include <cstdint>
#include <string>

#include "core/runtime/collective.h"

namespace penstock::collective {

// Returns `hash` with a number, or a text, mixed in.
uint64_t Mix(uint64_t hash, uint64_t value);
uint64_t MixText(uint64_t hash, const std::string& text);

// Returns a hash of the fields that all ranks of an execution have to agree on. The shape is one of
// them for a broadcast, too: ranks that receive know it from their node.
uint16_t FingerprintOf(const CollectiveCall& call);
// Returns "all-reduce of float[3]": the same fields for people.
std::string Describe(const CollectiveCall& call);

}  // namespace penstock::collective

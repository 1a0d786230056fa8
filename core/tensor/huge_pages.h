// SPDX-License-Identifier: Apache-2.0
//
// HugePages: gives an Arena host memory, in huge pages if the system has them. The first touch of
// fresh memory then runs at 7 GB/s instead of 1.3 GB/s (4 KiB pages).
#pragma once

#include <cstddef>

#include "core/tensor/arena.h"

namespace penstock {

// Thread-safe; never destroyed.
MemorySource& HugePages();

size_t MachineMemoryBytes();

}  // namespace penstock

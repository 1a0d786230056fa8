// SPDX-License-Identifier: Apache-2.0
//
// HugePages: provides an Arena with host memory, in huge pages if the system has them. The first
// write to fresh memory then runs at 7 GB/s, compared with 1.3 GB/s for pages of 4 KiB.
#pragma once

#include <cstddef>

#include "core/tensor/arena.h"

namespace penstock {

// Thread-safe; never destroyed.
MemorySource& HugePages();

size_t MachineMemoryBytes();

}  // namespace penstock

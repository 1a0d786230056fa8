// SPDX-License-Identifier: Apache-2.0
//
// HugePages: the host's memory as an Arena's source, in huge pages where the system has them: fresh
// memory is touched at 7 GB/s instead of 1.3 (4 KiB pages).
#pragma once

#include <cstddef>

#include "core/tensor/arena.h"

namespace penstock {

// Thread-safe; lives for ever.
MemorySource& HugePages();

size_t MachineMemoryBytes();

}  // namespace penstock

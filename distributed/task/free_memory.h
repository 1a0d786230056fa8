// SPDX-License-Identifier: Apache-2.0
//
// ReturnFreeMemory: called when sessions were closed, so that an idle server uses little memory.
// Thread-safe.
#pragma once

namespace penstock {

// Returns free memory to the system: the memory that the C library keeps, and that of the allocator
// of tensors. Closed sessions leave much of it (graphs, constants), because the library keeps a
// heap per thread. The top of each heap stays. Takes milliseconds; allocations of other threads may
// wait.
//
// `tensors`: whether to return memory that the allocator of tensors keeps, which later steps
// would reuse.
void ReturnFreeMemory(bool tensors);

}  // namespace penstock

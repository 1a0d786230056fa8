// SPDX-License-Identifier: Apache-2.0
//
// ReturnFreeMemory: called when sessions have been closed, so that a server without work is small.
// Thread-safe.
#pragma once

namespace penstock {

// Gives free memory that the allocator of tensors or the C library keeps back to the system. Closed
// sessions leave much of it (graphs, constants), because the library keeps a heap per thread. The
// top of each heap stays. Takes milliseconds; allocations of other threads may wait.
//
// `tensors`: whether to return memory that the allocator of tensors keeps, which later steps
// would reuse.
void ReturnFreeMemory(bool tensors);

}  // namespace penstock

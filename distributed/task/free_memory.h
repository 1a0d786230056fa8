// SPDX-License-Identifier: Apache-2.0
//
// ReturnFreeMemory: makes a process small again after much of its memory has become free.
// Thread-safe.
#pragma once

namespace penstock {

// Returns memory to the system that is free, but kept by the allocator of tensors or by the C
// library. Closed sessions leave much of it (graphs, constants), because the library keeps a
// heap per thread. The top of each heap stays. Takes milliseconds; allocations of other threads
// may wait.
//
// `tensors`: whether to return memory that the allocator of tensors keeps, which later steps
// would reuse.
void ReturnFreeMemory(bool tensors);

}  // namespace penstock

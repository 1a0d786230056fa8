// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace penstock {

// Gives memory that is free, but kept by the tensors' allocator or the C library, back to the
// system. Graphs and constants of closed sessions leave much of it: the library keeps a heap per
// thread. The top of each heap stays. Takes milliseconds; allocations of other threads may wait.
//
// `tensors`: also what the tensors' allocator keeps, which steps would use again.
void ReturnFreeMemory(bool tensors);

}  // namespace penstock

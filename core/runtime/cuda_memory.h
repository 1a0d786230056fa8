// SPDX-License-Identifier: Apache-2.0
//
// Allocators for the memory of a GPU, and for host memory that a GPU can copy to asynchronously.
// Private to this folder; only in builds with --config=cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "core/base/status.h"
#include "core/tensor/allocator.h"

namespace penstock {

// Allocates from the driver's pool of GPU `ordinal`, in the order of `stream`: work launched on
// that stream after the allocation may use the memory, and work launched after the deallocation may
// reuse it. The pool never returns memory to the system.
StatusOr<std::unique_ptr<Allocator>> MakeCudaAllocator(int ordinal, cudaStream_t stream);

// Returns the allocator of page-locked host memory. Locking pages takes longer than most copies, so
// it keeps freed blocks by size class. One per process, never destroyed.
Allocator& PinnedAllocator();

}  // namespace penstock

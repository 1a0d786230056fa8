// SPDX-License-Identifier: Apache-2.0
//
// The memory of a GPU, and the host's memory that a GPU can copy to while the CPU does other
// things. Private to this folder; only in builds with --config=cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "core/base/status.h"
#include "core/tensor/allocator.h"

namespace penstock {

// From the driver's pool of GPU `ordinal`, in the order of `stream`: memory may be used by what is
// launched on that stream after the allocation, and is free again for what comes after the
// deallocation. The pool keeps what it has taken from the system.
StatusOr<std::unique_ptr<Allocator>> MakeCudaAllocator(int ordinal, cudaStream_t stream);

// Page-locked memory of the host. Locking pages takes longer than most copies, so blocks are kept
// by size class. One per process, lives for ever.
Allocator& PinnedAllocator();

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/task/free_memory.h"

#include <malloc.h>

#include "core/tensor/caching_allocator.h"

namespace penstock {

void ReturnFreeMemory(bool tensors) {
  if (tensors) CachingAllocator::Get().ReturnUnused();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace penstock

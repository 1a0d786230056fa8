// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/allocator.h"

#include "core/tensor/caching_allocator.h"
#include "core/tensor/system_allocator.h"

namespace penstock {

Allocator& CpuAllocator() {
#if defined(__SANITIZE_ADDRESS__) || defined(PENSTOCK_TSAN)
  static Allocator& allocator = *new SystemAllocator;
#else
  static Allocator& allocator = CachingAllocator::Get();
#endif
  return allocator;
}

}  // namespace penstock

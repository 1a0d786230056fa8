// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/allocator.h"

#include <cstring>

#include "core/tensor/caching_allocator.h"
#include "core/tensor/system_allocator.h"

namespace penstock {

Status Allocator::Copy(const void* from, void* to, size_t bytes) {
  if (!host_accessible()) return Unimplemented("copying within ", name());
  if (bytes > 0) std::memcpy(to, from, bytes);
  return OkStatus();
}

Allocator& CpuAllocator() {
#if defined(__SANITIZE_ADDRESS__) || defined(PENSTOCK_TSAN)
  static Allocator& allocator = *new SystemAllocator;
#else
  static Allocator& allocator = CachingAllocator::Get();
#endif
  return allocator;
}

}  // namespace penstock

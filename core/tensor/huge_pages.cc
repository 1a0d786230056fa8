// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "core/base/check.h"

namespace penstock {
namespace {

constexpr size_t kHugePageBytes = 2 << 20;

class HugePageSource final : public MemorySource {
 public:
  void* Map(size_t bytes) override {
    // Maps an additional huge page, so that the region can be aligned, and then unmaps the bytes
    // before and after the region.
    const size_t mapped = bytes + kHugePageBytes;
    if (mapped < bytes) return nullptr;
    void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    char* begin = static_cast<char*>(raw);
    const size_t before = -reinterpret_cast<uintptr_t>(begin) & (kHugePageBytes - 1);
    const size_t after = kHugePageBytes - before;
    if (before > 0) Unmap(begin, before);
    if (after > 0) Unmap(begin + before + bytes, after);
    // Ignore errors: a system without huge pages is only slower.
    (void)madvise(begin + before, bytes, MADV_HUGEPAGE);
    return begin + before;
  }

  void Unmap(void* region, size_t bytes) override {
    CHECK(munmap(region, bytes) == 0, "cannot unmap ", bytes, " bytes");
  }

  bool Discard(void* part, size_t bytes) override {
    return madvise(part, bytes, MADV_DONTNEED) == 0;
  }
};

}  // namespace

MemorySource& HugePages() {
  static MemorySource& source = *new HugePageSource;
  return source;
}

size_t MachineMemoryBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace penstock

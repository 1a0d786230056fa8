// SPDX-License-Identifier: Apache-2.0
//
// RegisteredMemory: an allocator whose memory is registered with the RDMA device, in regions of 16
// MiB and more that stay registered until they are unmapped. Large tensors are received into it,
// and stay there until their last user frees them, even if the transport has ended.
//
// Memory that it hands out is charged to the task's MemoryAccount. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/tensor/allocator.h"
#include "core/tensor/arena.h"
#include "distributed/transport/verbs/device.h"

namespace penstock {

struct MemoryKeys {
  uint32_t local = 0;
  uint32_t remote = 0;
};

class RegisteredMemory final : public Allocator,
                               public std::enable_shared_from_this<RegisteredMemory> {
 public:
  // A registered region: its keys, and the object that unregisters it when destroyed.
  struct Registration {
    MemoryKeys keys;
    std::shared_ptr<void> holder;
  };
  using Register = std::function<StatusOr<Registration>(void* memory, size_t bytes)>;

  static constexpr size_t kRegionBytes = size_t{16} << 20;
  // Up to this much free memory is kept, so that the next step finds it registered.
  static constexpr size_t kCachedBytesMax = size_t{512} << 20;

  explicit RegisteredMemory(Register register_memory);
  // Returns an allocator that registers memory with the device: this end may read and write it, the
  // other end may only read it.
  static std::shared_ptr<RegisteredMemory> Of(std::shared_ptr<VerbsDevice> device);

  // Registers the first region. Returns an error if this process may not register memory.
  Status RegisterFirstRegion();
  // Returns the keys of the region that contains the entire range, or nothing.
  std::optional<MemoryKeys> Find(const void* begin, size_t bytes);

  // Implements Allocator:
  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* pointer, size_t bytes) override;
  AllocatorStats stats() const override;

 private:
  // Maps regions of huge pages, and registers them.
  class Source final : public MemorySource {
   public:
    explicit Source(Register register_memory) : register_(std::move(register_memory)) {}
    void* Map(size_t bytes) override;
    void Unmap(void* region, size_t bytes) override;
    std::optional<MemoryKeys> Find(const char* begin, size_t bytes);
    Status last_error();

   private:
    struct Region {
      size_t bytes;
      Registration registration;
    };
    const Register register_;
    Mutex mu_;
    std::map<const char*, Region> regions_ ABSL_GUARDED_BY(mu_);  // by their first byte
    Status error_ ABSL_GUARDED_BY(mu_);
  };

  const std::string name_ = "registered memory";
  Source source_;
  Arena arena_;
  mutable Mutex mu_;
  int64_t blocks_ ABSL_GUARDED_BY(mu_) = 0;  // blocks in use
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Keeps this object alive while blocks are in use.
  std::shared_ptr<RegisteredMemory> self_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

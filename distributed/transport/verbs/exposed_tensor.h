// SPDX-License-Identifier: Apache-2.0
//
// ExposedTensor: the bytes of a large tensor in memory that the other end may read.
//
//   memory that is registered already   stays where it is (tensors that were received over RDMA)
//   up to kStagedBytesMax               is copied into registered memory
//   larger                              is registered in place, for as long as this object lives;
//                                       copied if the device cannot register it
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "distributed/transport/tensor_encoding.h"
#include "distributed/transport/verbs/device.h"
#include "distributed/transport/verbs/registered_memory.h"

namespace penstock {

// Up to this size, copying a tensor is cheaper than registering and unregistering its memory, which
// takes about 100 us of system calls.
inline constexpr size_t kStagedBytesMax = size_t{256} << 10;

class ExposedTensor {
 public:
  // ResourceExhausted if no memory can be registered.
  static StatusOr<ExposedTensor> Make(const OutgoingTensor& tensor, VerbsDevice& device,
                                      RegisteredMemory& memory);

  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_.raw_data()); }
  uint32_t key() const { return key_; }
  // Returns true if the tensor itself is no longer needed.
  bool is_copy() const { return is_copy_; }

 private:
  static StatusOr<ExposedTensor> Copy(const OutgoingTensor& tensor, RegisteredMemory& memory);

  Tensor bytes_;  // the tensor whose memory is exposed; destroyed after the region
  std::unique_ptr<MemoryRegion> region_;
  uint32_t key_ = 0;
  bool is_copy_ = false;
};

}  // namespace penstock

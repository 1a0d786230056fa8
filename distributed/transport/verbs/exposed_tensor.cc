// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/exposed_tensor.h"

#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace penstock {

StatusOr<ExposedTensor> ExposedTensor::Copy(const OutgoingTensor& tensor,
                                            RegisteredMemory& memory) {
  const Shape shape({static_cast<int64_t>(tensor.bytes())});
  ExposedTensor exposed;
  ASSIGN_OR_RETURN(exposed.bytes_, Tensor::Make(memory, DType::kUint8, shape));
  std::memcpy(exposed.bytes_.mutable_raw_data(), tensor.data(), tensor.bytes());
  const auto keys = memory.Find(exposed.bytes_.raw_data(), tensor.bytes());
  CHECK(keys.has_value(), "registered memory without a key");
  exposed.key_ = keys->remote;
  exposed.is_copy_ = true;
  return exposed;
}

StatusOr<ExposedTensor> ExposedTensor::Make(const OutgoingTensor& tensor, VerbsDevice& device,
                                            RegisteredMemory& memory) {
  ExposedTensor exposed;
  exposed.bytes_ = tensor.body();
  if (const auto keys = memory.Find(tensor.data(), tensor.bytes())) {
    exposed.key_ = keys->remote;
    return exposed;
  }
  if (tensor.bytes() <= kStagedBytesMax) return Copy(tensor, memory);
  StatusOr<std::unique_ptr<MemoryRegion>> region =
      device.Register(const_cast<char*>(tensor.data()), tensor.bytes(), IBV_ACCESS_REMOTE_READ);
  // Copies memory that the device cannot pin, such as memory mapped from a file.
  if (!region.ok()) return Copy(tensor, memory);
  exposed.region_ = *std::move(region);
  exposed.key_ = exposed.region_->remote_key();
  return exposed;
}

}  // namespace penstock

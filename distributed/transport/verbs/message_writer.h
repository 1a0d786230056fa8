// SPDX-License-Identifier: Apache-2.0
//
// VerbsMessageWriter: the producer's end of a ring: writes tensors, offers and refusals.
//
// One per connection, since the numbers of keys live as long as it does. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"
#include "distributed/transport/key_numbers.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/tensor_encoding.h"
#include "distributed/transport/verbs/message.h"

namespace penstock {

// The place in the producer's memory from which the consumer reads a large tensor.
struct OfferedBytes {
  uint64_t offer = 0;  // its number
  uint64_t address = 0;
  uint32_t address_key = 0;
};

class VerbsMessageWriter {
 public:
  explicit VerbsMessageWriter(const RingMemory& ring) : ring_(ring) {}

  // ResourceExhausted if the tensor's header does not fit into a message.
  static Status CheckHeader(const OutgoingTensor& tensor);
  // Each returns false, and nothing is written, if there is no room now.
  StatusOr<bool> WriteTensor(const OutgoingTensor& tensor) { return Write(tensor, nullptr); }
  StatusOr<bool> WriteOffer(const OutgoingTensor& tensor, const OfferedBytes& where) {
    return Write(tensor, &where);
  }
  StatusOr<bool> WriteRefusal(int64_t step_id, const Status& why);

 private:
  StatusOr<bool> Write(const OutgoingTensor& tensor, const OfferedBytes* where);

  RingWriter ring_;
  KeyNumbers keys_;
};

}  // namespace penstock

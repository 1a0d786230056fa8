// SPDX-License-Identifier: Apache-2.0
//
// TensorRecordWriter: the producer's end of a ring. Small tensors go in whole; of large ones the
// ring has the header, and the bytes lie elsewhere, or follow as pieces.
//
// One per connection, since the numbers of keys live as long as it does. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"
#include "distributed/transport/key_numbers.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/records/tensor_record.h"
#include "distributed/transport/tensor_encoding.h"

namespace penstock {

// The place of bytes of Place::kElsewhere. The transport gives the numbers their meaning.
struct ElsewhereBytes {
  uint64_t address = 0;
  uint64_t offer = 0;
  uint32_t address_key = 0;
};

class TensorRecordWriter {
 public:
  explicit TensorRecordWriter(const RingMemory& ring) : ring_(ring) {}

  RingWriter& ring() { return ring_; }
  // ResourceExhausted if the tensor's header does not fit into a record.
  static Status CheckHeader(const OutgoingTensor& tensor);
  // Returns false, and nothing is written, if there is no room now.
  StatusOr<bool> Write(const OutgoingTensor& tensor, Place place, const ElsewhereBytes& where = {});
  // Writes what there is room for of the bytes of the last tensor that was written with
  // Place::kPieces, and moves `*sent`. Stops when all are written, or there is no room. A tensor
  // that is begun and not continued is dropped when the next one is begun.
  Status WritePieces(const OutgoingTensor& tensor, size_t* sent);
  // As Write.
  StatusOr<bool> WriteRefusal(int64_t step_id, const Status& why);

 private:
  RingWriter ring_;
  KeyNumbers keys_;
};

}  // namespace penstock

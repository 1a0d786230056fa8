// SPDX-License-Identifier: Apache-2.0
//
// TensorRecordWriter: the producer's end of a ring. It writes small tensors completely. For a large
// one it writes only the header; the bytes are read from shared or registered memory, or follow as
// pieces (Place).
//
// One per connection, because the numbers of keys are valid within one connection. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"
#include "distributed/transport/key_numbers.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/records/tensor_record.h"
#include "distributed/transport/tensor_encoding.h"

namespace penstock {

// Says where bytes of Place::kElsewhere are. The transport defines the meaning of the
// numbers.
struct ElsewhereBytes {
  uint64_t address = 0;
  uint64_t offer = 0;
  uint32_t address_key = 0;
};

class TensorRecordWriter {
 public:
  explicit TensorRecordWriter(const RingMemory& ring) : ring_(ring) {}

  RingWriter& ring() { return ring_; }
  // Returns ResourceExhausted if the tensor's header does not fit into a record.
  static Status CheckHeader(const OutgoingTensor& tensor);
  // Writes a tensor's record, with the bytes if `place` is kInline; `where` is for kElsewhere.
  // Returns false, and writes nothing, if there is no room at the moment.
  StatusOr<bool> Write(const OutgoingTensor& tensor, Place place, const ElsewhereBytes& where = {});
  // Writes as many bytes of the last tensor with Place::kPieces as there is room for, and
  // advances `*sent`. If a tensor is begun before the last one is complete, the last one is
  // dropped.
  Status WritePieces(const OutgoingTensor& tensor, size_t* sent);
  // Writes the refusal of a step. Returns false, and writes nothing, if there is no room at the
  // moment.
  StatusOr<bool> WriteRefusal(int64_t step_id, const Status& why);

 private:
  RingWriter ring_;
  KeyNumbers keys_;
};

}  // namespace penstock

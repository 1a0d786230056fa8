// SPDX-License-Identifier: Apache-2.0
//
// TensorRecordReader: the consumer's end of a ring. It does not trust the producer: it copies
// headers out of the ring before it checks them, so that the producer cannot change them later.
//
// A transport derives from it to receive tensors whose bytes are not in the ring. One per
// connection, because the numbers of keys are valid within one connection. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/runtime/rendezvous.h"
#include "distributed/transport/key_numbers.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/received.h"
#include "distributed/transport/records/tensor_record.h"
#include "distributed/transport/tensor_encoding.h"

namespace penstock {

// A tensor's record without the bytes of Place::kInline.
struct TensorRecord {
  TensorFields fields;
  std::vector<int64_t> dims;
  HashedKey key;

  // Returns a header that borrows from this object.
  TensorHeader header() const {
    return {.dtype = fields.dtype,
            .dims = dims,
            .is_dead = fields.is_dead != 0,
            .is_encoded = fields.is_encoded != 0,
            .bytes = fields.total_bytes};
  }
};

class TensorRecordReader {
 public:
  using Wanted = absl::FunctionRef<bool(int64_t step_id)>;
  struct Received {
    std::vector<ReceivedTensor> tensors;
    std::vector<RefusedStep> refused;
  };

  // `landing` is borrowed.
  TensorRecordReader(const RingMemory& ring, Landing& landing) : landing_(landing), ring_(ring) {}
  virtual ~TensorRecordReader() = default;

  RingReader& ring() { return ring_; }
  // Reads one record, if there is one, and adds what it completes to `*received`. Skips tensors
  // of steps that are not wanted. An error means that the rest of the ring cannot be understood.
  // Returns false if there was no record.
  StatusOr<bool> Read(Wanted wanted, Received* received);
  // Frees the memory of a tensor that has arrived partially, if its step is no longer wanted.
  void DropUnwanted(Wanted wanted);

 protected:
  // Receives, or begins to receive, a tensor of Place::kElsewhere, which is larger than
  // kInlineBytesMax. If no step wants the tensor, returns its memory to the producer. An error ends
  // the connection.
  virtual Status ReadElsewhere(TensorRecord record, bool wanted, Received* received) = 0;
  // Adds `tensor` to `*received`. If it is an error, adds a refusal of its step instead, which
  // names the tensor.
  static void Finish(const TensorRecord& record, StatusOr<IncomingTensor> tensor,
                     Received* received);

  Landing& landing_;

 private:
  struct Partial {
    TensorRecord record;
    IncomingTensor tensor;
  };
  Status ReadTensor(size_t bytes, Wanted wanted, Received* received);
  StatusOr<TensorRecord> ParseTensor(size_t bytes);
  Status ReadPiece(size_t bytes, Wanted wanted, Received* received);
  Status ReadRefusal(size_t bytes, Wanted wanted, Received* received);

  RingReader ring_;
  NumberedKeys keys_;
  std::optional<Partial> partial_;  // a tensor with pieces still to come
  // Bytes of the current tensor that are still to come in pieces, even if no step wants it.
  size_t pieces_left_ = 0;
};

}  // namespace penstock

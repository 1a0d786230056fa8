// SPDX-License-Identifier: Apache-2.0
//
// VerbsMessageReader: the consumer's end of a ring. Believes nothing: lengths are checked, in
// copies that the producer cannot change any more.
//
// One per connection, since the numbers of keys live as long as it does. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/runtime/rendezvous.h"
#include "distributed/transport/key_numbers.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/received.h"
#include "distributed/transport/tensor_encoding.h"
#include "distributed/transport/verbs/message.h"

namespace penstock {

// A large tensor whose bytes wait in the producer's memory.
struct TensorOffer {
  VerbsTensorFields fields;
  std::vector<int64_t> dims;
  HashedKey key;

  // Borrows from this object.
  TensorHeader header() const {
    return {.dtype = fields.dtype,
            .dims = dims,
            .is_dead = fields.is_dead != 0,
            .is_encoded = fields.is_encoded != 0,
            .bytes = fields.bytes};
  }
};

class VerbsMessageReader {
 public:
  // `landing` is borrowed.
  VerbsMessageReader(const RingMemory& ring, Landing& landing) : ring_(ring), landing_(landing) {}

  struct Messages {
    std::vector<ReceivedTensor> tensors;
    std::vector<TensorOffer> offers;  // wanted or not: each has to be answered
    std::vector<RefusedStep> refused;
  };
  // Reads one message, if there is one, and adds it to `*messages`. Small tensors and refusals of
  // steps that are not wanted are skipped. An error means that nothing more of the ring can be
  // understood. Returns false if there was no message.
  StatusOr<bool> Read(absl::FunctionRef<bool(int64_t step_id)> wanted, Messages* messages);
  bool HasMore() const { return ring_.HasMore(); }

 private:
  StatusOr<TensorOffer> ParseTensor(size_t bytes, bool has_body);
  Status ReadTensor(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted, Messages* messages);
  Status ReadOffer(size_t bytes, Messages* messages);
  Status ReadRefusal(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted, Messages* messages);

  RingReader ring_;
  Landing& landing_;
  NumberedKeys keys_;
};

}  // namespace penstock

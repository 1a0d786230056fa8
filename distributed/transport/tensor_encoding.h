// SPDX-License-Identifier: Apache-2.0
//
// A tensor as transports see it: a header and a range of bytes.
//
//   OutgoingTensor   the producer's side: the bytes are the tensor's own memory, or an encoding of
//                    values that are not plain bytes (strings, handles, variants)
//   IncomingTensor   the consumer's side: allocates memory that Landing chooses, takes the bytes as
//                    they arrive, and makes the tensor
//
// A transport sends the header's fields, in any form, and the bytes. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/runtime/rendezvous.h"
#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The header of a tensor: everything that a consumer needs before the first byte.
struct TensorHeader {
  int dtype = 0;                   // the number of its DType; 0: a dead value without a tensor
  absl::Span<const int64_t> dims;  // borrowed
  bool is_dead = false;            // the value of an untaken branch
  bool is_encoded = false;         // the bytes are an encoding, not the plain elements
  uint64_t bytes = 0;
};

// Chooses the memory into which a consumer receives tensors.
class Landing {
 public:
  // Returns the allocator of the memory into which the tensor is received. Called once per tensor
  // of plain bytes, before its first byte arrives; must not block. Encoded values always become
  // C++ objects in CPU memory.
  virtual Allocator& AllocatorFor(int64_t step_id, const HashedKey& key, DType dtype,
                                  const Shape& shape) {
    return CpuAllocator();
  }

 protected:
  ~Landing() = default;
};

class OutgoingTensor {
 public:
  // Encodes `value` if it does not consist of plain bytes.
  OutgoingTensor(int64_t step_id, HashedKey key, Tensor value, bool is_dead);
  // Returns ResourceExhausted if the encoding is too long for any message, or the error of a
  // variant that cannot be encoded. Such a tensor must not be sent.
  const Status& status() const { return status_; }

  int64_t step_id() const { return step_id_; }
  const HashedKey& key() const { return key_; }
  // Returns a header that borrows from this object.
  TensorHeader header() const;
  size_t bytes() const { return bytes_; }
  const char* data() const { return static_cast<const char*>(body().raw_data()); }
  // Returns the tensor whose memory holds data(): a copy of this tensor, or a reference to its
  // buffer, keeps the bytes alive. Not valid if there are no bytes.
  const Tensor& body() const { return encoded_.valid() ? encoded_ : value_; }

 private:
  int64_t step_id_;
  HashedKey key_;
  Tensor value_;
  Tensor encoded_;  // the encoding, a tensor of bytes; not valid if `value_` is sent as it is
  bool is_dead_;
  size_t bytes_ = 0;
  Status status_;
};

// A tensor that is being received, for transports that write the bytes with the CPU.
class IncomingTensor {
 public:
  // Allocates the memory. The header comes from another process: DataLoss says what is wrong with
  // it, ResourceExhausted that there is no memory, Unimplemented that the CPU cannot write to the
  // memory.
  static StatusOr<IncomingTensor> Begin(int64_t step_id, const HashedKey& key,
                                        const TensorHeader& header, Landing& landing);

  size_t filled() const { return filled_; }
  size_t missing() const { return total_ - filled_; }
  bool is_dead() const { return is_dead_; }
  // Returns where the caller has to write the next `count` bytes at once. Null if `count` is 0.
  // REQUIRES: count <= missing().
  char* Next(size_t count);
  // Returns the tensor. REQUIRES: missing() == 0. DataLoss or InvalidArgument if the bytes are no
  // encoded tensor.
  StatusOr<Tensor> Finish() &&;

 private:
  Tensor value_;
  std::string encoded_;
  bool is_encoded_ = false;
  bool is_dead_ = false;
  size_t filled_ = 0;
  size_t total_ = 0;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// A tensor as transports see it: a header and a range of bytes.
//
//   OutgoingTensor   the producer's side: the bytes are the tensor's own memory, or an encoding of
//                    values that are not plain bytes (strings, handles, variants)
//   IncomingTensor   the consumer's side: takes memory where Landing says, the bytes as they come,
//                    and makes the tensor
//
// A transport moves the header's fields in whatever form it likes, and the bytes. Not thread-safe.
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

// The facts that a consumer needs before the first byte.
struct TensorHeader {
  int dtype = 0;                   // the number of its DType; 0: a dead value without a tensor
  absl::Span<const int64_t> dims;  // borrowed
  bool is_dead = false;            // the value of an untaken branch
  bool is_encoded = false;         // the bytes are an encoding, not the elements
  uint64_t bytes = 0;
};

// The consumer's choice of memory for the tensors that it receives.
class Landing {
 public:
  // Returns the allocator of the memory into which the tensor is received. Called once per tensor
  // of plain bytes, before its first byte arrives; must not block. Values that are encoded always
  // become C++ objects in the CPU's memory.
  virtual Allocator& AllocatorFor(int64_t step_id, const HashedKey& key, DType dtype,
                                  const Shape& shape) {
    return CpuAllocator();
  }

 protected:
  ~Landing() = default;
};

class OutgoingTensor {
 public:
  // Encodes `value` if it is not plain bytes.
  OutgoingTensor(int64_t step_id, HashedKey key, Tensor value, bool is_dead);
  // Is ResourceExhausted if the encoding is too long for any message, or the error of a variant
  // that cannot travel. Such a tensor must not be sent.
  const Status& status() const { return status_; }

  int64_t step_id() const { return step_id_; }
  const HashedKey& key() const { return key_; }
  // Borrows from this object.
  TensorHeader header() const;
  size_t bytes() const { return bytes_; }
  const char* data() const { return static_cast<const char*>(body().raw_data()); }
  // The tensor whose memory holds data(): keep a copy or a reference on its buffer to keep the
  // bytes. Not valid if there are none.
  const Tensor& body() const { return encoded_.valid() ? encoded_ : value_; }

 private:
  int64_t step_id_;
  HashedKey key_;
  Tensor value_;
  Tensor encoded_;  // bytes
  bool is_dead_;
  size_t bytes_ = 0;
  Status status_;
};

// For transports that write the bytes with the CPU.
class IncomingTensor {
 public:
  // Takes the memory. The header comes from another process: DataLoss says what is wrong with it,
  // ResourceExhausted that there is no memory, Unimplemented that the CPU cannot write to it.
  static StatusOr<IncomingTensor> Begin(int64_t step_id, const HashedKey& key,
                                        const TensorHeader& header, Landing& landing);

  size_t filled() const { return filled_; }
  size_t missing() const { return total_ - filled_; }
  bool is_dead() const { return is_dead_; }
  // Returns where the next `count` bytes belong; the caller writes them at once. Null if `count` is
  // 0. REQUIRES count <= missing().
  char* Next(size_t count);
  // REQUIRES missing() == 0. DataLoss or InvalidArgument if the bytes are no encoded tensor.
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

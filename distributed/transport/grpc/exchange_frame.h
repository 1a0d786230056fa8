// SPDX-License-Identifier: Apache-2.0
//
// FrameWriter and FrameReader: the messages of the Exchange stream (TensorBatch in
// proto/penstock/exchange.proto), without a copy in user space at the producer and with one, into
// the tensor's own memory, at the consumer.
//
// One writer and one reader per stream, since the numbers of keys live as long as it does. Not
// thread-safe.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/runtime/rendezvous.h"
#include "distributed/transport/key_numbers.h"
#include "distributed/transport/received.h"
#include "distributed/transport/tensor_encoding.h"
#include "proto/penstock/exchange.pb.h"

namespace penstock {

// The body of a frame is about this long at most: tensors are cut, so that small ones never wait
// for long behind large ones, and so that the consumer copies one part while the next is on its
// way.
inline constexpr size_t kFrameBytes = size_t{1} << 20;

class FrameWriter {
 public:
  // Adds what fits of the tensor's bytes from `*sent` on, and moves `*sent`. True when all are in.
  bool Add(const OutgoingTensor& tensor, size_t* sent);
  void Refuse(int64_t step_id, const Status& why);
  bool full() const { return body_bytes_ >= kFrameBytes; }
  // The frame of what was added since the last call.
  grpc::ByteBuffer Take();

 private:
  void NameKey(const HashedKey& key, wire::TensorPart* part);
  void AddBytes(const OutgoingTensor& tensor, size_t from, size_t count);
  void FlushSmall();

  wire::TensorBatchHeader header_;
  std::string small_;  // bytes that are cheaper to copy than to refer to
  std::vector<grpc::Slice> body_;
  size_t body_bytes_ = 0;
  KeyNumbers keys_;
};

class FrameReader {
 public:
  // `landing` is borrowed: into which memory tensors are received.
  explicit FrameReader(Landing& landing) : landing_(landing) {}

  // Adds what the frame completes. Tensors of steps that are not wanted are skipped. One that is
  // wrong in itself, or for which there is no memory, is a refusal of its step. The bytes come from
  // another process: an error means that nothing more of the stream can be understood.
  Status Read(const grpc::ByteBuffer& frame, absl::FunctionRef<bool(int64_t step_id)> wanted,
              std::vector<ReceivedTensor>* received, std::vector<RefusedStep>* refused);

 private:
  class Cursor;
  using PartialKey = std::pair<int64_t, uint64_t>;  // step, hash of the key
  Status ReadPart(const wire::TensorPart& part, bool wanted, Cursor* body,
                  std::vector<ReceivedTensor>* received, std::vector<RefusedStep>* refused);
  StatusOr<IncomingTensor> Begin(const wire::TensorPart& part, const HashedKey& key);

  Landing& landing_;
  NumberedKeys keys_;
  absl::flat_hash_map<PartialKey, IncomingTensor> partials_;  // more parts of them are to come
};

}  // namespace penstock

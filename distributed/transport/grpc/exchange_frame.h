// SPDX-License-Identifier: Apache-2.0
//
// FrameWriter and FrameReader: the messages of the Exchange stream (TensorBatch in
// proto/penstock/worker.proto), without a copy in user space at the producer and with one, into the
// tensor's own memory, at the consumer.
//
// One writer and one reader per stream, since the numbers of keys live as long as it does. Not
// thread-safe.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/runtime/rendezvous.h"
#include "proto/penstock/worker.pb.h"

namespace penstock {

// The body of a frame is about this long at most: tensors are cut, so that small ones never wait
// for long behind large ones, and so that the consumer copies one part while the next is on its
// way.
inline constexpr size_t kFrameBytes = size_t{1} << 20;

// A tensor on its way out.
class OutgoingTensor {
 public:
  OutgoingTensor(int64_t step_id, HashedKey key, Tensor value, bool is_dead);
  // An error for one that cannot be sent, such as ResourceExhausted where no message can hold it;
  // it must not be added to a frame.
  const Status& status() const { return status_; }
  int64_t step_id() const { return step_id_; }
  size_t bytes() const { return total_; }

 private:
  friend class FrameWriter;
  int64_t step_id_;
  HashedKey key_;
  Tensor value_;
  bool is_dead_;
  std::shared_ptr<const std::string> proto_;  // of a tensor that is not plain bytes
  size_t total_ = 0;
  size_t sent_ = 0;
  Status status_;
};

class FrameWriter {
 public:
  // Adds what of the tensor fits. True when it is all in.
  bool Add(OutgoingTensor* tensor);
  void Refuse(int64_t step_id, const Status& why);
  bool full() const { return body_bytes_ >= kFrameBytes; }
  // The frame of what was added since the last call.
  grpc::ByteBuffer Take();

 private:
  struct KeyHash {
    size_t operator()(const HashedKey& key) const { return key.hash(); }
  };
  void NameKey(const HashedKey& key, wire::TensorPart* part);
  void AddBytes(const OutgoingTensor& tensor, size_t count);
  void FlushSmall();

  wire::TensorBatchHeader header_;
  std::string small_;  // bytes that are cheaper to copy than to refer to
  std::vector<grpc::Slice> body_;
  size_t body_bytes_ = 0;
  absl::flat_hash_map<HashedKey, uint32_t, KeyHash> keys_;  // outside of loops
};

class FrameReader {
 public:
  struct Received {
    int64_t step_id;
    HashedKey key;
    Tensor value;
    bool is_dead;
  };
  struct Refused {
    int64_t step_id;
    Status why;
  };

  // What a frame completes. Tensors of steps that nobody wants are skipped. One that is wrong in
  // itself, or for which there is no memory, is a refusal of its step. The bytes come from another
  // process: an error means that nothing more of the stream can be understood.
  Status Read(const grpc::ByteBuffer& frame, absl::FunctionRef<bool(int64_t step_id)> wanted,
              std::vector<Received>* received, std::vector<Refused>* refused);

 private:
  class Cursor;
  // A tensor of which parts are still to come.
  struct Partial {
    Tensor value;
    std::string proto;
    bool is_proto = false;
    bool is_dead = false;
    size_t filled = 0;
    size_t total = 0;
  };
  using PartialKey = std::pair<int64_t, uint64_t>;  // step, hash of the key
  StatusOr<HashedKey> KeyOf(const wire::TensorPart& part);
  Status ReadPart(const wire::TensorPart& part, bool wanted, Cursor* body,
                  std::vector<Received>* received, std::vector<Refused>* refused);
  static StatusOr<Partial> Begin(const wire::TensorPart& part);
  static StatusOr<Tensor> Finish(Partial partial);

  std::vector<HashedKey> keys_;  // by number, from 1
  absl::flat_hash_map<PartialKey, Partial> partials_;
};

}  // namespace penstock

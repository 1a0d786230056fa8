// SPDX-License-Identifier: Apache-2.0
//
// FrameWriter and FrameReader: write and read the messages of the Exchange stream (TensorBatch in
// proto/penstock/exchange.proto). The writer does not copy a tensor's bytes in user space. The
// reader copies them once, into the tensor's memory.
//
// One writer and one reader per stream, because the numbers of keys are valid within one stream.
// Not thread-safe.
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

// The approximate maximum size of a frame's body. Large tensors are cut into frames, so that small
// ones never wait long behind them, and so that the consumer copies one frame while it receives
// the next.
inline constexpr size_t kFrameBytes = size_t{1} << 20;

class FrameWriter {
 public:
  // Adds as many of the tensor's bytes as fit, beginning at `*sent`, and advances `*sent`. Returns
  // true when all are added.
  bool Add(const OutgoingTensor& tensor, size_t* sent);
  // Adds a refusal, which tells the consumer to fail the step with `why`.
  void Refuse(int64_t step_id, const Status& why);
  bool full() const { return body_bytes_ >= kFrameBytes; }
  // Returns the frame with everything added since the last call.
  grpc::ByteBuffer Take();

 private:
  void NameKey(const HashedKey& key, wire::TensorPart* part);
  void AddBytes(const OutgoingTensor& tensor, size_t from, size_t count);
  void FlushSmall();

  wire::TensorBatchHeader header_;
  std::string
      small_;  // short byte ranges, copied because a slice of its own would cost more
  std::vector<grpc::Slice> body_;
  size_t body_bytes_ = 0;
  KeyNumbers keys_;
};

class FrameReader {
 public:
  // `landing`, which chooses the memory of received tensors, is borrowed.
  explicit FrameReader(Landing& landing) : landing_(landing) {}

  // Adds the tensors and refusals that the frame completes. Skips tensors of steps that are not
  // wanted. If a tensor is malformed, or there is no memory for it, its step is refused. The bytes
  // come from another process: an error means that the rest of the stream cannot be understood.
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
  // Tensors that have arrived partially; the rest follows in later frames.
  absl::flat_hash_map<PartialKey, IncomingTensor> partials_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Splits values that are too large for one message into pieces: blocks of elements in row-major
// order, which are sent before the record that the value belongs to.
//
// PieceReader: not thread-safe. The functions have no state.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "proto/penstock/replica.pb.h"

namespace penstock {

// A value with more bytes than this travels in pieces of this size.
constexpr int64_t kPieceBytes = 64 << 20;

// Returns whether `value` travels in pieces of `piece_bytes`. Values that are not plain bytes, such
// as strings, are never split.
bool TravelsInPieces(const Tensor& value, int64_t piece_bytes);

// Calls `send` for each piece of `value`, in order. If `send` returns an error, stops and returns
// the error. REQUIRES TravelsInPieces.
Status SendPieces(const Tensor& value, int64_t piece_bytes,
                  absl::FunctionRef<Status(wire::ValuePiece piece)> send);

// Reassembles values from their pieces, which come from another process.
class PieceReader {
 public:
  // Adds a piece. ResourceExhausted if bytes() would exceed `bytes_max`; InvalidArgument if the
  // piece is malformed or does not follow the one before.
  Status Add(const wire::ValuePiece& piece, int64_t bytes_max);
  // Removes and returns the value that was completed first. InvalidArgument if there is none.
  StatusOr<Tensor> Take();
  void Clear();
  // Returns the total size of the values that Take has not returned yet. A value counts in full
  // from its first piece on.
  int64_t bytes() const { return bytes_; }

 private:
  Status BeginValue(const tensorflow::TensorProto& whole, int64_t bytes_max);

  std::deque<Tensor> complete_;
  Tensor next_;
  int64_t filled_ = 0;  // elements of next_
  int64_t bytes_ = 0;
};

}  // namespace penstock

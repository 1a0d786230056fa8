// SPDX-License-Identifier: Apache-2.0
//
// TensorRecordReader: the consumer's end of a shared ring. Believes nothing: lengths and offsets
// are checked, in copies that the producer cannot change any more.
//
// One per connection, since the numbers of keys live as long as it does. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/runtime/rendezvous.h"
#include "distributed/transport/key_numbers.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/received.h"
#include "distributed/transport/shm/received_memory.h"
#include "distributed/transport/shm/tensor_record.h"
#include "distributed/transport/tensor_encoding.h"

namespace penstock {

class TensorRecordReader {
 public:
  // `memory`: of the arena. `landing` is borrowed.
  TensorRecordReader(const RingMemory& ring, std::shared_ptr<ReceivedMemory> memory,
                     Landing& landing)
      : ring_(ring), memory_(std::move(memory)), landing_(landing) {}

  RingReader& ring() { return ring_; }
  // Reads one record, if there is one, and adds what it completes. Tensors of steps that are not
  // wanted are skipped. An error means that nothing more of the ring can be understood. Returns
  // false if there was no record.
  StatusOr<bool> Read(absl::FunctionRef<bool(int64_t step_id)> wanted,
                      std::vector<ReceivedTensor>* received, std::vector<RefusedStep>* refused);
  // Gives back the memory of a tensor that has come in part, if its step is not wanted any more.
  void DropUnwanted(absl::FunctionRef<bool(int64_t step_id)> wanted);

 private:
  struct Partial {
    int64_t step_id;
    HashedKey key;
    IncomingTensor tensor;
  };
  struct Parsed;
  Status ReadTensor(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                    std::vector<ReceivedTensor>* received, std::vector<RefusedStep>* refused);
  StatusOr<Parsed> ParseTensor(size_t bytes);
  Status Receive(Parsed parsed, std::vector<ReceivedTensor>* received,
                 std::vector<RefusedStep>* refused);
  Status ReadPiece(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                   std::vector<ReceivedTensor>* received, std::vector<RefusedStep>* refused);
  Status ReadRefusal(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                     std::vector<RefusedStep>* refused);
  static void Finish(Partial partial, std::vector<ReceivedTensor>* received,
                     std::vector<RefusedStep>* refused);

  RingReader ring_;
  const std::shared_ptr<ReceivedMemory> memory_;
  Landing& landing_;
  NumberedKeys keys_;
  std::optional<Partial> partial_;  // pieces of it are to come
  size_t pieces_left_ = 0;          // bytes that are to come in pieces, wanted or not
};

}  // namespace penstock

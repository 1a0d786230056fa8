// SPDX-License-Identifier: Apache-2.0
//
// What the shared rings carry: records of tensors and refusals from the producer, commands from the
// consumer.
//
//   RecordWriter   the producer's end. Small tensors go in whole; of large ones the ring has the
//                  header, and the bytes lie in the arena, or follow as pieces
//   RecordReader   the consumer's end. Believes nothing: lengths and offsets are checked, in copies
//                  that the producer cannot change any more
//
// One of each per connection, since the numbers of keys live as long as it does. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/runtime/rendezvous.h"
#include "distributed/transport/key_numbers.h"
#include "distributed/transport/shm/received_memory.h"
#include "distributed/transport/shm/ring.h"
#include "distributed/transport/tensor_encoding.h"

namespace penstock {

// Tensors up to this size travel inside the ring and overtake larger ones.
inline constexpr size_t kInlineBytesMax = size_t{64} << 10;
// Of a record without a tensor's bytes: a key of such a length is refused, a message cut.
inline constexpr size_t kRecordTextMax = size_t{64} << 10;

// Where a tensor's bytes are.
enum class Place : uint32_t { kInline, kArena, kPieces };

// What the consumer says, in the other ring.
struct Command {
  enum Kind : uint64_t {
    kSubscribe = 1,  // to the step `value`
    kFree,           // the block at the offset `value` of the arena may be used again
  };
  uint64_t kind;
  uint64_t value;
};

class RecordWriter {
 public:
  explicit RecordWriter(const RingMemory& ring) : ring_(ring) {}

  RingWriter& ring() { return ring_; }
  // ResourceExhausted if the tensor's header does not fit into a record.
  static Status CheckHeader(const OutgoingTensor& tensor);
  // False, and nothing is written, if there is no room now. `offset`: of Place::kArena.
  StatusOr<bool> Write(const OutgoingTensor& tensor, Place place, uint64_t offset);
  // Writes what there is room for of the bytes of the last tensor that was written with
  // Place::kPieces, and moves `*sent`. Stops when all are written, or there is no room. A tensor
  // that is begun and not continued is dropped when the next one is begun.
  Status WritePieces(const OutgoingTensor& tensor, size_t* sent);
  StatusOr<bool> WriteRefusal(int64_t step_id, const Status& why);

 private:
  RingWriter ring_;
  KeyNumbers keys_;
};

class RecordReader {
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

  // `memory`: of the arena. `landing` is borrowed.
  RecordReader(const RingMemory& ring, std::shared_ptr<ReceivedMemory> memory, Landing& landing)
      : ring_(ring), memory_(std::move(memory)), landing_(landing) {}

  RingReader& ring() { return ring_; }
  // Reads one record, if there is one, and adds what it completes. Tensors of steps that are not
  // wanted are skipped. An error means that nothing more of the ring can be understood. Returns
  // false if there was no record.
  StatusOr<bool> Read(absl::FunctionRef<bool(int64_t step_id)> wanted,
                      std::vector<Received>* received, std::vector<Refused>* refused);
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
                    std::vector<Received>* received, std::vector<Refused>* refused);
  StatusOr<Parsed> ParseTensor(size_t bytes);
  Status Receive(Parsed parsed, std::vector<Received>* received, std::vector<Refused>* refused);
  Status ReadPiece(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                   std::vector<Received>* received, std::vector<Refused>* refused);
  Status ReadRefusal(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                     std::vector<Refused>* refused);
  static void Finish(Partial partial, std::vector<Received>* received,
                     std::vector<Refused>* refused);

  RingReader ring_;
  const std::shared_ptr<ReceivedMemory> memory_;
  Landing& landing_;
  NumberedKeys keys_;
  std::optional<Partial> partial_;  // pieces of it are to come
  size_t pieces_left_ = 0;          // bytes that are to come in pieces, wanted or not
};

}  // namespace penstock

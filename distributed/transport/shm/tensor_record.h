// SPDX-License-Identifier: Apache-2.0
//
// The layout of what the shared rings carry: records of tensors, pieces of tensors and refusals
// from the producer, commands from the consumer. Both ends run on one machine, so numbers are as
// the machine has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Tensors up to this size travel inside the ring and overtake larger ones.
inline constexpr size_t kInlineBytesMax = size_t{64} << 10;
// The limit of a record without a tensor's bytes: a longer key is refused, a longer message cut.
inline constexpr size_t kRecordTextMax = size_t{64} << 10;

enum class RecordKind : uint32_t { kTensor = 1, kPiece, kRefusal };

struct RecordHead {
  RecordKind kind;
  uint32_t bytes;  // that follow
};

// The place of a tensor's bytes.
enum class Place : uint32_t { kInline, kArena, kPieces };

// Behind it: the dimensions, the key's text, and the bytes of Place::kInline.
struct TensorFields {
  int64_t step_id;
  uint64_t frame;
  uint64_t iteration;
  uint64_t total_bytes;
  uint64_t offset;  // of Place::kArena
  uint32_t key;
  uint32_t key_bytes;
  int32_t dtype;
  uint32_t rank;
  uint32_t is_dead;
  uint32_t is_encoded;
  Place place;
  uint32_t unused;
};

using RecordDim = int64_t;

// Behind it: the message.
struct RefusalFields {
  int64_t step_id;
  int64_t code;
};

// A record of the other ring.
struct Command {
  enum Kind : uint64_t {
    kSubscribe = 1,  // to the step `value`
    kFree,           // the block at the offset `value` of the arena may be used again
  };
  uint64_t kind;
  uint64_t value;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The layout of what the rings of a connection carry: records of tensors, pieces of tensors and
// refusals from the producer, commands from the consumer.
//
// Numbers are little-endian and the layout has no gaps. Each transport that uses it has a version
// in its handshake: raise them with each change (kShmVersion, kVerbsVersion).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace penstock {

static_assert(std::endian::native == std::endian::little, "hosts exchange numbers as they are");

// Tensors up to this size travel inside the ring and overtake larger ones.
inline constexpr size_t kInlineBytesMax = size_t{64} << 10;
// The limit of a record without a tensor's bytes: a longer key is refused, a longer message cut.
inline constexpr size_t kRecordTextMax = size_t{64} << 10;

enum class RecordKind : uint32_t { kTensor = 1, kPiece, kRefusal };

struct RecordHead {
  RecordKind kind;
  uint32_t bytes;  // that follow
};

// The place of a tensor's bytes: in its record; in memory that the transport knows; in pieces,
// which are records that follow.
enum class Place : uint32_t { kInline, kElsewhere, kPieces };

// Behind it: the dimensions (int64_t each), the key's text, and the bytes of Place::kInline.
struct TensorFields {
  int64_t step_id;
  uint64_t frame;
  uint64_t iteration;
  uint64_t total_bytes;
  uint64_t address;  // of Place::kElsewhere, as are offer and address_key; see ElsewhereBytes
  uint64_t offer;
  uint32_t address_key;
  uint32_t key;
  uint32_t key_bytes;
  int32_t dtype;
  uint32_t rank;
  uint16_t is_dead;
  uint16_t is_encoded;
  Place place;
  uint32_t unused;
};
static_assert(sizeof(TensorFields) == 80);

// Behind it: the message.
struct RefusalFields {
  int64_t step_id;
  int64_t code;
};

// A record of the other ring.
struct Command {
  enum Kind : uint64_t {
    kSubscribe = 1,  // to the step `value`
    kDone,           // the consumer needs the bytes no more: by address (shm) or by offer (verbs)
  };
  uint64_t kind;
  uint64_t value;
};

}  // namespace penstock

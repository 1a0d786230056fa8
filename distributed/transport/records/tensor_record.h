// SPDX-License-Identifier: Apache-2.0
//
// The layout of the data in the rings of a connection: tensor records, pieces of tensors and
// refusals from the producer; commands from the consumer.
//
// Numbers are little-endian, and structs have no padding. Each transport that uses the layout has a
// version in its handshake: raise kShmVersion and kVerbsVersion when the layout changes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace penstock {

static_assert(std::endian::native == std::endian::little, "hosts exchange numbers as they are");

// Tensors up to this size travel inside the ring and overtake larger ones.
inline constexpr size_t kInlineBytesMax = size_t{64} << 10;
// The maximum number of bytes of a record, without the bytes of its tensor. A tensor with a longer
// key is refused; a longer message of a refusal is truncated.
inline constexpr size_t kRecordTextMax = size_t{64} << 10;

enum class RecordKind : uint32_t { kTensor = 1, kPiece, kRefusal };

struct RecordHead {
  RecordKind kind;
  uint32_t bytes;  // bytes that follow the header
};

// The place of a tensor's bytes: kInline: in its record; kElsewhere: in shared or registered memory
// (ElsewhereBytes); kPieces: in the records that follow.
enum class Place : uint32_t { kInline, kElsewhere, kPieces };

// The fields of a tensor's record. In the ring, the dimensions (int64_t each), the key's text and,
// for Place::kInline, the tensor's bytes follow.
struct TensorFields {
  int64_t step_id;
  uint64_t frame;
  uint64_t iteration;
  uint64_t total_bytes;
  uint64_t
      address;  // used, like offer and address_key, only for Place::kElsewhere; see ElsewhereBytes
  uint64_t offer;
  uint32_t address_key;
  uint32_t key;        // the key's number (key_numbers.h)
  uint32_t key_bytes;  // length of the key's text; 0: the key's number was sent before
  int32_t dtype;
  uint32_t rank;
  uint16_t is_dead;
  uint16_t is_encoded;
  Place place;
  uint32_t unused;
};
static_assert(sizeof(TensorFields) == 80);

// The fields of a refusal's record. In the ring, the error's message follows.
struct RefusalFields {
  int64_t step_id;
  int64_t code;
};

// A record of the ring of commands.
struct Command {
  enum Kind : uint64_t {
    kSubscribe = 1,  // subscribe to the step `value`
    // The consumer has finished with the bytes at offset `value` of the arena (shm), or of the
    // offer `value` (verbs).
    kDone,
  };
  uint64_t kind;
  uint64_t value;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The layout of the data in the rings of a connection: tensor records, pieces of tensors and
// refusals from the producer; commands from the consumer.
//
// Numbers are little-endian and the layout has no gaps. Each transport that uses the layout has a
// version in its handshake: raise kShmVersion and kVerbsVersion with each change.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace penstock {

static_assert(std::endian::native == std::endian::little, "hosts exchange numbers as they are");

// Tensors up to this size travel inside the ring and overtake larger ones.
inline constexpr size_t kInlineBytesMax = size_t{64} << 10;
// The limit of a record without a tensor's bytes. A tensor with a longer key is refused; a
// longer message is truncated.
inline constexpr size_t kRecordTextMax = size_t{64} << 10;

enum class RecordKind : uint32_t { kTensor = 1, kPiece, kRefusal };

struct RecordHead {
  RecordKind kind;
  uint32_t bytes;  // bytes that follow the header
};

// The place of a tensor's bytes: kInline: in its record; kElsewhere: in memory that the transport
// knows; kPieces: in the records that follow.
enum class Place : uint32_t { kInline, kElsewhere, kPieces };

// Followed by the dimensions (int64_t each), the key's text, and the bytes if they are
// kInline.
struct TensorFields {
  int64_t step_id;
  uint64_t frame;
  uint64_t iteration;
  uint64_t total_bytes;
  uint64_t address;  // this, offer and address_key: for Place::kElsewhere; see ElsewhereBytes
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

// Followed by the message.
struct RefusalFields {
  int64_t step_id;
  int64_t code;
};

// A record of the ring of commands.
struct Command {
  enum Kind : uint64_t {
    kSubscribe = 1,  // subscribe to the step `value`
    // The consumer has finished with the bytes at an address (shm) or of an offer (verbs).
    kDone,
  };
  uint64_t kind;
  uint64_t value;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The layout of what goes through the rings of a connection: small tensors, offers of large ones
// and refusals from the producer, commands from the consumer.
//
// Numbers are little-endian, the layout has no gaps, and its version is a part of the handshake.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace penstock {

static_assert(std::endian::native == std::endian::little, "hosts exchange numbers as they are");

// Raised with each change of what the two ends share: of the handshake, the messages or the rings.
inline constexpr uint32_t kVerbsVersion = 1;
// Tensors up to this size travel inside the ring and overtake larger ones.
inline constexpr size_t kVerbsInlineBytesMax = size_t{64} << 10;
// The limit of a message without a tensor's bytes: a longer key is refused, a longer text cut.
inline constexpr size_t kVerbsTextMax = size_t{64} << 10;
inline constexpr size_t kVerbsRankMax = 254;  // as shapes have it
// Rings of the two directions. Powers of two; a message says how many bytes were written.
inline constexpr size_t kVerbsTensorRingBytes = size_t{512} << 10;
inline constexpr size_t kVerbsCommandRingBytes = size_t{64} << 10;

struct VerbsMessageHead {
  enum Kind : uint32_t { kTensor = 1, kOffer, kRefusal };
  uint32_t kind;
  uint32_t bytes;  // that follow
};

// The fields of a kTensor or kOffer message. Behind them stand the dimensions (int64_t each), the
// key's text and, in a kTensor message, the tensor's bytes.
struct VerbsTensorFields {
  int64_t step_id;
  uint64_t frame;
  uint64_t iteration;
  uint64_t bytes;
  uint64_t address;      // of kOffer: where the bytes are, in the producer's memory
  uint64_t offer;        // of kOffer: its number
  uint32_t address_key;  // of kOffer: the rkey of that memory
  uint32_t key;
  uint32_t key_bytes;
  int32_t dtype;
  uint32_t rank;
  uint16_t is_dead;
  uint16_t is_encoded;
};
static_assert(sizeof(VerbsTensorFields) == 72);

// Behind it: the text.
struct VerbsRefusalFields {
  int64_t step_id;
  int64_t code;
};

struct VerbsCommand {
  enum Kind : uint64_t {
    kSubscribe = 1,  // to the step `value`
    kTaken,          // the offer `value` has been read, or is not wanted
  };
  uint64_t kind;
  uint64_t value;
};

}  // namespace penstock

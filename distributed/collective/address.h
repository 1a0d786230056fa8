// SPDX-License-Identifier: Apache-2.0
//
// Address: says which execution of which group a message belongs to. It travels as the frame and
// the iteration of the message's rendezvous key (HashedKey::In); the rest of the key says which
// task sends to which (KeyBetween).
#pragma once

#include <cstdint>

#include "core/op/task_name.h"
#include "core/runtime/rendezvous.h"

namespace penstock::collective {

struct Address {
  static constexpr uint64_t kExecutionMask = (uint64_t{1} << 48) - 1;

  uint32_t group = 0;        // FormedGroup::id
  uint64_t execution = 0;    // 48 bits
  uint16_t fingerprint = 0;  // hash of kind, type and size, so that disagreeing ranks are detected
  uint32_t tag = 0;          // Tag::Number

  uint64_t frame() const { return uint64_t{group} << 32 | execution >> 16; }
  uint64_t iteration() const {
    return (execution & 0xffff) << 48 | uint64_t{fingerprint} << 32 | tag;
  }
  static Address Of(const HashedKey& key) {
    return {.group = static_cast<uint32_t>(key.frame() >> 32),
            .execution = (key.frame() & 0xffffffff) << 16 | key.iteration() >> 48,
            .fingerprint = static_cast<uint16_t>(key.iteration() >> 32),
            .tag = static_cast<uint32_t>(key.iteration())};
  }
};

inline constexpr char kDataKey[] = "collective", kMessageKey[] = "collective ranks";
// Returns the key under which `from` sends to `to`.
inline HashedKey KeyBetween(const TaskName& from, const TaskName& to, const char* tensor) {
  return HashedKey({.src_device = from.ToString() + "/device:CPU:0",
                    .dst_device = to.ToString() + "/device:CPU:0",
                    .tensor = tensor});
}

}  // namespace penstock::collective

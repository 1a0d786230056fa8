// SPDX-License-Identifier: Apache-2.0
//
// Numbers for rendezvous keys: a way from one task to another spells a key out once and names it by
// its number from then on.
//
// KeyNumbers gives the numbers at the producer, NumberedKeys knows them at the consumer. One of
// each per connection, for headers that arrive in the order in which they were numbered. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/status.h"
#include "core/runtime/rendezvous.h"

namespace penstock {

class KeyNumbers {
 public:
  struct Number {
    uint32_t value;  // from 1; 0: no number is left for the key
    bool is_new;     // the key has to be spelled out, as TextOf does
  };
  // Keys that differ only in frame and iteration have the same number.
  Number NumberOf(const HashedKey& key);
  static std::string TextOf(const HashedKey& key) { return key.key().ToString(); }

 private:
  struct Hash {
    size_t operator()(const HashedKey& key) const { return key.hash(); }
  };
  absl::flat_hash_map<HashedKey, uint32_t, Hash> numbers_;  // of keys outside of loops
};

class NumberedKeys {
 public:
  // Returns the key of a header. `text` is empty unless the key is spelled out. The header comes
  // from another process: DataLoss or InvalidArgument says what is wrong with it, and later headers
  // cannot be understood any more.
  StatusOr<HashedKey> Find(uint32_t number, const std::string& text, uint64_t frame,
                           uint64_t iteration);

 private:
  std::vector<HashedKey> keys_;  // by number, from 1
};

}  // namespace penstock

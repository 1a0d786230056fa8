// SPDX-License-Identifier: Apache-2.0
//
// Numbers for rendezvous keys: a connection from one task to another sends the text of a key once,
// and then only its number.
//
// KeyNumbers assigns the numbers at the producer; NumberedKeys maps them back at the consumer.
// There is one of each per connection. Headers have to arrive in the order in which they were
// numbered. Not thread-safe.
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
    uint32_t value;  // from 1; 0: the numbers are used up
    bool is_new;     // true if the key's text (TextOf) has to be sent, too
  };
  // Returns the number of `key`. Keys that differ only in frame and iteration share a number.
  Number NumberOf(const HashedKey& key);
  static std::string TextOf(const HashedKey& key) { return key.key().ToString(); }

 private:
  struct Hash {
    size_t operator()(const HashedKey& key) const { return key.hash(); }
  };
  absl::flat_hash_map<HashedKey, uint32_t, Hash> numbers_;  // by key without frame and iteration
};

class NumberedKeys {
 public:
  // Returns the key of a header. `text` is empty unless the producer sent the key's text. The
  // header comes from another process: DataLoss or InvalidArgument says what is wrong with it;
  // after such an error, later headers cannot be understood.
  StatusOr<HashedKey> Find(uint32_t number, const std::string& text, uint64_t frame,
                           uint64_t iteration);

 private:
  std::vector<HashedKey> keys_;  // by number, from 1
};

}  // namespace penstock

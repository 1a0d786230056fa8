// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/key_numbers.h"

#include <utility>

namespace penstock {
namespace {

// The maximum number of keys that get numbers in one connection. The text of further keys is sent
// each time.
constexpr size_t kNumbersMax = size_t{1} << 20;

}  // namespace

KeyNumbers::Number KeyNumbers::NumberOf(const HashedKey& key) {
  HashedKey base = key.In(0, 0);
  const auto known = numbers_.find(base);
  if (known != numbers_.end()) return {known->second, false};
  if (numbers_.size() >= kNumbersMax) return {0, true};
  const uint32_t number = static_cast<uint32_t>(numbers_.size() + 1);
  numbers_.emplace(std::move(base), number);
  return {number, true};
}

StatusOr<HashedKey> NumberedKeys::Find(uint32_t number, const std::string& text, uint64_t frame,
                                       uint64_t iteration) {
  if (!text.empty()) {
    ASSIGN_OR_RETURN(RendezvousKey parsed, RendezvousKey::Parse(text));
    const HashedKey key(std::move(parsed));
    if (number != 0) {
      if (number != keys_.size() + 1 || number > kNumbersMax) {
        return DataLoss("key ", number, " is out of order");
      }
      keys_.push_back(key);
    }
    return key.In(frame, iteration);
  }
  if (number == 0 || number > keys_.size()) return DataLoss("key ", number, " has no name");
  return keys_[number - 1].In(frame, iteration);
}

}  // namespace penstock

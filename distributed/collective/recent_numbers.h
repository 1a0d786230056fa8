// SPDX-License-Identifier: Apache-2.0
//
// RecentNumbers: remembers the last N different numbers that were added.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>

namespace penstock::collective {

class RecentNumbers {
 public:
  explicit RecentNumbers(size_t most) : most_(most) {}

  void Add(uint64_t number) {
    if (!numbers_.insert(number).second) return;
    order_.push_back(number);
    if (order_.size() <= most_) return;
    numbers_.erase(order_.front());
    order_.pop_front();
  }
  bool contains(uint64_t number) const { return numbers_.contains(number); }
  // Returns the numbers, oldest first.
  const std::deque<uint64_t>& in_order() const { return order_; }

 private:
  const size_t most_;
  std::set<uint64_t> numbers_;
  std::deque<uint64_t> order_;
};

}  // namespace penstock::collective

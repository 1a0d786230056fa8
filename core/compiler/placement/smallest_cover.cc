// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/smallest_cover.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace penstock {
namespace {

constexpr int kExactMax = 4;

class Cover {
 public:
  explicit Cover(const std::vector<std::vector<bool>>& sets)
      : sets_(sets), covered_(sets.empty() ? 0 : sets[0].size()) {
    std::map<std::vector<bool>, int> distinct;
    for (size_t i = 0; i < sets.size(); ++i) distinct.emplace(sets[i], static_cast<int>(i));
    for (const auto& [set, index] : distinct) candidates_.push_back(index);
    std::ranges::sort(candidates_);
  }

  std::vector<int> Run() {
    for (int size = 1; size <= kExactMax; ++size) {
      if (Extend(size)) return Sorted();
    }
    if (Greedy()) return Sorted();
    std::vector<int> all(sets_.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

 private:
  std::vector<int> Sorted() {
    std::ranges::sort(chosen_);
    return chosen_;
  }

  // Covers the elements that are not covered yet with at most `left` more sets. One of them must
  // contain the first of these elements.
  bool Extend(int left) {
    const auto rest = std::ranges::find(covered_, 0);
    if (rest == covered_.end()) return true;
    if (left == 0) return false;
    const size_t element = rest - covered_.begin();
    for (const int candidate : candidates_) {
      if (!sets_[candidate][element]) continue;
      Choose(candidate, 1);
      if (Extend(left - 1)) return true;
      Choose(candidate, -1);
    }
    return false;
  }

  void Choose(int candidate, int sign) {
    if (sign > 0) {
      chosen_.push_back(candidate);
    } else {
      chosen_.pop_back();
    }
    for (size_t x = 0; x < covered_.size(); ++x) covered_[x] += sign * sets_[candidate][x];
  }

  bool Greedy() {
    const auto gain = [&](int candidate) {
      int count = 0;
      for (size_t x = 0; x < covered_.size(); ++x) count += !covered_[x] && sets_[candidate][x];
      return count;
    };
    while (std::ranges::find(covered_, 0) != covered_.end()) {
      const auto best = std::ranges::max_element(candidates_, {}, gain);
      if (best == candidates_.end() || gain(*best) == 0) return false;
      Choose(*best, 1);
    }
    return true;
  }

  const std::vector<std::vector<bool>>& sets_;
  std::vector<int> candidates_;  // one index for each distinct set
  std::vector<int> covered_;     // by element: how many of the chosen sets contain it
  std::vector<int> chosen_;
};

}  // namespace

std::vector<int> SmallestCover(const std::vector<std::vector<bool>>& sets) {
  return Cover(sets).Run();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace penstock {
namespace {

constexpr int kNameMax = 100;
constexpr size_t kKnownMax = 20'000;
constexpr size_t kSuggestionsMax = 3;

int EditDistance(string_view a, string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i) + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const bool same = absl::ascii_tolower(a[i]) == absl::ascii_tolower(b[j]);
      const int best = std::min({row[j] + 1, row[j + 1] + 1, diagonal + !same});
      diagonal = std::exchange(row[j + 1], best);
    }
  }
  return row.back();
}

}  // namespace

// Declared in suggest.h.
std::string SuggestNames(string_view name, const std::vector<string_view>& known) {
  const int size = static_cast<int>(name.size());
  if (size > kNameMax) return "";
  const int far = std::min(std::max(2, size / 3), size / 2);
  std::vector<std::pair<int, string_view>> near;
  for (size_t i = 0; i < std::min(known.size(), kKnownMax); ++i) {
    if (std::abs(static_cast<int>(known[i].size()) - size) > far) continue;
    const int distance = EditDistance(name, known[i]);
    if (distance <= far) near.emplace_back(distance, known[i]);
  }
  if (near.empty()) return "";
  std::sort(near.begin(), near.end());
  if (near.size() > kSuggestionsMax) near.resize(kSuggestionsMax);
  return StrCat("; did you mean ",
                absl::StrJoin(near, " or ",
                              [](std::string* out, const auto& candidate) {
                                StrAppend(out, "'", candidate.second, "'");
                              }),
                "?");
}

}  // namespace penstock

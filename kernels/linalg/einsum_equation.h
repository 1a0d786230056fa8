// SPDX-License-Identifier: Apache-2.0
//
// The equation of Einsum, parsed: "ij,jk->ik", with letters for the dimensions of one or two inputs
// and of the output, and "..." for dimensions that broadcast.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace penstock {

struct EinsumEquation {
  std::vector<std::string> inputs;
  std::string output;

  static StatusOr<EinsumEquation> Parse(string_view equation, int num_inputs);
};

inline constexpr char kEllipsis[] = "...";
inline constexpr size_t kEllipsisSize = sizeof(kEllipsis) - 1;
inline bool HasEllipsis(string_view subscripts) {
  return subscripts.find(kEllipsis) != string_view::npos;
}

// A label per dimension of a tensor: a letter, or, of the dimensions that the ellipsis stands for,
// kEllipsisLabel + how far from its last.
using Labels = absl::InlinedVector<int, 8>;
inline constexpr int kEllipsisLabel = 256;

struct EinsumLabels {
  std::vector<Labels> inputs;
  Labels output;
  std::map<int, int64_t> sizes;  // -1: unknown

  // InvalidArgument if the shapes do not fit the equation. REQUIRES known ranks.
  static StatusOr<EinsumLabels> Of(const EinsumEquation& equation,
                                   const std::vector<PartialShape>& shapes);
  Dims SizesOf(const Labels& labels) const;
};

}  // namespace penstock

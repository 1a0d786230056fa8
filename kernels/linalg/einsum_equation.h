// SPDX-License-Identifier: Apache-2.0
//
// EinsumEquation: the parsed equation of an Einsum, like "ij,jk->ik". Letters stand for dimensions
// of the one or two inputs and of the output, "..." for dimensions that broadcast.
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

// One label per dimension of a tensor: a letter, or for a dimension of the ellipsis kEllipsisLabel
// + its distance from the ellipsis's last dimension.
using Labels = absl::InlinedVector<int, 8>;
inline constexpr int kEllipsisLabel = 256;

struct EinsumLabels {
  std::vector<Labels> inputs;
  Labels output;
  std::map<int, int64_t> sizes;  // by label; -1: unknown

  // Returns the labels and their sizes. InvalidArgument if the shapes do not fit the equation.
  // REQUIRES: known ranks.
  static StatusOr<EinsumLabels> Of(const EinsumEquation& equation,
                                   const std::vector<PartialShape>& shapes);
  Dims SizesOf(const Labels& labels) const;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/linalg/einsum_equation.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

constexpr int64_t kUnknown = PartialShape::kUnknown;

int NamedDims(string_view subscripts) {
  return static_cast<int>(subscripts.size() - (HasEllipsis(subscripts) ? kEllipsisSize : 0));
}

Status CheckSubscripts(string_view subscripts, string_view equation) {
  std::string letters(subscripts);
  if (HasEllipsis(subscripts)) letters.erase(letters.find(kEllipsis), kEllipsisSize);
  if (std::all_of(letters.begin(), letters.end(), absl::ascii_isalpha)) return OkStatus();
  return InvalidArgument("equation '", equation, "': subscripts '", subscripts,
                         "' must be letters and at most one '...'");
}

// Returns the labels of a tensor's dimensions. `ellipsis` is the number of dimensions for which
// "..." stands.
Labels LabelsOf(string_view subscripts, int ellipsis) {
  Labels labels;
  for (size_t i = 0; i < subscripts.size(); ++i) {
    if (subscripts[i] != '.') {
      labels.push_back(static_cast<unsigned char>(subscripts[i]));
      continue;
    }
    for (int k = ellipsis; k > 0; --k) labels.push_back(kEllipsisLabel + k - 1);
    i += kEllipsisSize - 1;
  }
  return labels;
}

StatusOr<int> EllipsisDims(string_view subscripts, int input, const PartialShape& shape) {
  const int named = NamedDims(subscripts), rank = shape.rank();
  if (rank == named || (rank > named && HasEllipsis(subscripts))) return rank - named;
  return InvalidArgument("input ", input, " must have rank ", named,
                         HasEllipsis(subscripts) ? " or more" : "", " for subscripts '", subscripts,
                         "', has shape ", shape.ToString());
}

// Merges `other` into `*size`: the sizes that two tensors have for one dimension. Dimensions of an
// ellipsis broadcast. Returns false if the sizes do not fit each other.
bool MergeSize(int label, int64_t other, int64_t* size) {
  if (*size == other || other == kUnknown) {
    if (label >= kEllipsisLabel && other == kUnknown && *size == 1) *size = kUnknown;
    return true;
  }
  if (*size == kUnknown) {
    if (label < kEllipsisLabel || other != 1) *size = other;
    return true;
  }
  if (label < kEllipsisLabel || (*size != 1 && other != 1)) return false;
  if (*size == 1) *size = other;
  return true;
}

}  // namespace

StatusOr<EinsumEquation> EinsumEquation::Parse(string_view equation, int num_inputs) {
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) {
    return InvalidArgument("equation '", equation, "' must have exactly one '->'");
  }
  EinsumEquation parsed{.inputs = absl::StrSplit(sides[0], ','), .output = sides[1]};
  if (parsed.inputs.size() > 2 || static_cast<int>(parsed.inputs.size()) != num_inputs) {
    return InvalidArgument("equation '", equation, "' speaks of ", parsed.inputs.size(),
                           " inputs, there are ", num_inputs, "; at most 2");
  }
  for (const std::string& input : parsed.inputs) RETURN_IF_ERROR(CheckSubscripts(input, equation));
  RETURN_IF_ERROR(CheckSubscripts(parsed.output, equation));
  for (const char label : parsed.output) {
    if (label == '.' || sides[0].find(label) != std::string::npos) continue;
    return InvalidArgument("equation '", equation, "': no input has the output's label '",
                           std::string(1, label), "'");
  }
  return parsed;
}

StatusOr<EinsumLabels> EinsumLabels::Of(const EinsumEquation& equation,
                                        const std::vector<PartialShape>& shapes) {
  EinsumLabels all;
  int ellipsis = 0;  // number of dimensions of the output's ellipsis
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string& subscripts = equation.inputs[i];
    ASSIGN_OR_RETURN(const int own, EllipsisDims(subscripts, static_cast<int>(i), shapes[i]));
    ellipsis = std::max(ellipsis, own);
    const Labels labels = LabelsOf(subscripts, own);
    for (int d = 0; d < shapes[i].rank(); ++d) {
      const auto [at, added] = all.sizes.emplace(labels[d], shapes[i].dim(d));
      if (added || MergeSize(labels[d], shapes[i].dim(d), &at->second)) continue;
      return InvalidArgument("dimension ", d, " of input ", i, ", of shape ", shapes[i].ToString(),
                             ", must be ", at->second, " for subscripts '", subscripts, "'");
    }
    all.inputs.push_back(labels);
  }
  if (ellipsis > 0 && !HasEllipsis(equation.output)) {
    return InvalidArgument("the output's subscripts '", equation.output, "' lack the '...' of ",
                           ellipsis, " dimensions");
  }
  all.output = LabelsOf(equation.output, ellipsis);
  return all;
}

Dims EinsumLabels::SizesOf(const Labels& labels) const {
  Dims dims;
  for (const int label : labels) dims.push_back(sizes.at(label));
  return dims;
}

}  // namespace penstock

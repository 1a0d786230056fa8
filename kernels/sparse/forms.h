// SPDX-License-Identifier: Apache-2.0
//
// Shared by the definitions of the sparse ops: arguments and examples.
#pragma once

#include <string>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/op_def.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {

using Gradients = std::vector<Gradient>;

// Returns the three arguments of a sparse tensor: prefix_indices, prefix_values, prefix_shape.
inline std::vector<ArgDef> SparseArgs(const std::string& prefix, const char* type = "T") {
  const std::string p = prefix.empty() ? "" : prefix + "_";
  return {{p + "indices", "int64"}, {p + "values", type}, {p + "shape", "int64"}};
}
inline std::vector<ArgDef> Join(std::vector<ArgDef> a, const std::vector<ArgDef>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

using ExampleArgs = std::vector<std::vector<ExampleTensor>>;
// Return the arguments of a sparse tensor of shape 2 x 3, for examples: one with three entries, and
// one with two.
inline ExampleArgs SparseExample() {
  return {{{{3, 2}, {0, 0, 0, 2, 1, 1}}}, {{{3}}}, {{{2}, {2, 3}}}};
}
inline ExampleArgs OtherSparseExample() {
  return {{{{2, 2}, {0, 1, 0, 2}}}, {{{2}}}, {{{2}, {2, 3}}}};
}
inline ExampleArgs Join(ExampleArgs a, const ExampleArgs& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Output GatherNd(Output params, Output indices) {
  return Call("GatherNd", {params, indices});
}

}  // namespace penstock

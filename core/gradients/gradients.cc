// SPDX-License-Identifier: Apache-2.0
#include "core/gradients/gradients.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/gradients/gradient_walk.h"

namespace penstock {

bool InGradientScope(string_view name) {
  for (const string_view part : absl::StrSplit(name, '/')) {
    if (absl::StartsWith(part, kGradientScope)) return true;
  }
  return false;
}

StatusOr<std::vector<Gradient>> AddGradients(GraphBuilder& builder, const Outputs& ys,
                                             const Outputs& xs, const Outputs& dys) {
  // kernels/tensor_array distinguishes calls of AddGradients by the first gradient scope in the
  // name of a node. So a nested call opens its scope at the root, and a name contains only one.
  const auto root =
      builder.NameScope(InGradientScope(builder.name_scope()) ? "" : builder.name_scope());
  const auto scope = builder.NameScope(kGradientScope);
  return GradientWalk(builder, ys, xs).Run(dys);
}

Gradient SumGradients(const std::vector<Gradient>& parts) {
  if (parts.size() == 1) return parts[0];
  bool all_sparse = true;
  for (const Gradient& part : parts) all_sparse &= part.sparse();
  Outputs values, indices;
  for (const Gradient& part : parts) {
    values.push_back(all_sparse ? part.values : Dense(part));
    if (all_sparse) indices.push_back(part.indices);
  }
  if (!all_sparse) return AddN(values);
  const Output axis = Constant(*values[0].sink, Tensor::Scalar<int32_t>(0));
  return Gradient(ConcatV2(values, axis), ConcatV2(indices, axis), parts[0].dense_shape);
}

}  // namespace penstock

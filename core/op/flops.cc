// SPDX-License-Identifier: Apache-2.0
#include "core/op/flops.h"

namespace penstock {
namespace {

double Size(int64_t dim) { return dim < 0 ? kUnknownDim : static_cast<double>(dim); }

bool IsSet(const Attrs& attrs, const char* name) {
  const auto attr = attrs.find(name);
  const bool* const value = attr == attrs.end() ? nullptr : attr->second.get<bool>();
  return value != nullptr && *value;
}

}  // namespace

double Elements(const PartialShape& shape) {
  if (!shape.known_rank()) return kUnknownDim * kUnknownDim;
  double product = 1;
  for (const int64_t dim : shape.dims()) product *= Size(dim);
  return product;
}

double MatMulFlops(const FlopsScope& scope) {
  const double out = Elements(scope.outputs[0]);
  const PartialShape& a = scope.inputs[0];
  if (!a.known_rank() || a.rank() < 2) return 2 * out * kUnknownDim;
  const bool transposed = IsSet(scope.attrs, "transpose_a") || IsSet(scope.attrs, "adj_x");
  return 2 * out * Size(a.dim(a.rank() - (transposed ? 2 : 1)));
}

double ConvolutionFlops(const FlopsScope& scope) {
  const PartialShape& filter = scope.inputs[1];
  const bool known = filter.known_rank() && filter.rank() > 0 && filter.dim(filter.rank() - 1) > 0;
  const double channels = known ? Size(filter.dim(filter.rank() - 1)) : kUnknownDim;
  return 2 * Elements(scope.outputs[0]) * Elements(filter) / channels;
}

}  // namespace penstock

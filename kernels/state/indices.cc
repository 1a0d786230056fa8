// SPDX-License-Identifier: Apache-2.0
#include "kernels/state/indices.h"

namespace penstock {
namespace {

// "[1,0]": where element `flat` of a tensor of `shape` stands.
std::string Position(const Shape& shape, int64_t flat) {
  std::string text;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    text = StrCat(flat % shape.dim(d), text.empty() ? "" : ",", text);
    flat /= shape.dim(d);
  }
  return StrCat("[", text, "]");
}

}  // namespace

Status CheckIndices(const Tensor& indices, int64_t limit) {
  return VisitIndices(indices, [&](auto values) -> Status {
    bool good = true;
    for (const auto value : values) {
      good &= value >= 0 && value < limit;
    }
    if (good) return OkStatus();
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [limit](int64_t value) { return value < 0 || value >= limit; });
    return InvalidArgument("indices", Position(indices.shape(), bad - values.begin()), " = ", *bad,
                           " is not in [0, ", limit, ")");
  });
}

StatusOr<Rows> RowsOf(const Shape& shape, string_view what) {
  if (shape.rank() == 0) return InvalidArgument(what, " must be at least 1-D, is a scalar");
  Rows rows{.count = shape.dim(0), .length = 1};
  for (int d = 1; d < shape.rank(); ++d) rows.length *= shape.dim(d);
  return rows;
}

Shape RowShape(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

}  // namespace penstock

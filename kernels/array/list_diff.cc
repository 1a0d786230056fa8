// SPDX-License-Identifier: Apache-2.0
//
// ListDiff: the elements of x that are not in y, in order, and their indices in x.
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/distinct.h"
#include "kernels/array/elements.h"
#include "kernels/array/types.h"

namespace penstock {
namespace {

std::vector<int64_t> PlacesNotIn(const Tensor& x, const Tensor& y) {
  std::vector<int64_t> places;
  if (x.dtype() == DType::kString) {
    const auto excluded = y.flat<std::string>();
    const absl::flat_hash_set<string_view> set(excluded.begin(), excluded.end());
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      if (!set.contains(x.data<std::string>()[i])) places.push_back(i);
    }
    return places;
  }
  const ElementKeys keys = KeysOf(x), excluded = KeysOf(y);
  const absl::flat_hash_set<uint64_t> set(excluded.bits.begin(), excluded.bits.end());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (keys.is_nan(i) || !set.contains(keys.bits[i])) places.push_back(i);
  }
  return places;
}

template <class Index>
class ListDiffKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &x = ctx.input(0), &y = ctx.input(1);
    if (x.rank() != 1) return InvalidArgument("x should be a 1D vector.");
    if (y.rank() != 1) return InvalidArgument("y should be a 1D vector.");
    if (x.num_elements() > std::numeric_limits<Index>::max()) {
      return InvalidArgument("x too large for int32 indexing");
    }
    const std::vector<int64_t> places = PlacesNotIn(x, y);
    const auto count = static_cast<int64_t>(places.size());
    Tensor *out, *index;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({count}), &out));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape({count}), &index));
    for (int64_t k = 0; k < count; ++k) {
      CopyElements(x.dtype(), ElementAt(x.raw_data(), x.dtype(), places[k]),
                   ElementAt(out->mutable_raw_data(), x.dtype(), k), 1);
    }
    std::copy(places.begin(), places.end(), index->mutable_data<Index>());
    return OkStatus();
  }
};

Status ListDiffShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  s.set_output(0, PartialShape::UnknownOfRank(1));
  s.set_output(1, PartialShape::UnknownOfRank(1));
  return OkStatus();
}

OP(ListDiff) {
  return {
      .doc =
          "Returns the elements of x that are not in y, in their order, and their indices "
          "in x.",
      .inputs = {{"x", "T"}, {"y", "T"}},
      .outputs = {{"out", "T"}, {"idx", "out_idx"}},
      .types = {{"T", Hashable()}, {"out_idx", kIndex, DType::kInt32}},
      .shape = ListDiffShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{5}, {1, 2, 3, 2, 5}}}, {{{2}, {2, 9}}}}}},
  };
}
KERNEL_BY("out_idx", ListDiff, ListDiffKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock

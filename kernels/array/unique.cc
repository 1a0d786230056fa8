// SPDX-License-Identifier: Apache-2.0
//
// Unique, UniqueWithCounts: the distinct elements of a vector in the order of their first
// occurrence, where each element went, and how often it occurs.
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/distinct.h"
#include "kernels/array/elements.h"
#include "kernels/array/types.h"

namespace penstock {
namespace {

// place[i]: which distinct element element i is; first[k]: where distinct element k is met first.
struct Distinct {
  std::vector<int64_t> place, first;
};

template <class Key, class KeyAt, class IsNew>
Distinct FindDistinct(int64_t count, const KeyAt& key, const IsNew& always_new) {
  Distinct found;
  found.place.reserve(count);
  absl::flat_hash_map<Key, int64_t> seen;
  for (int64_t i = 0; i < count; ++i) {
    const auto next = static_cast<int64_t>(found.first.size());
    const int64_t place = always_new(i) ? next : seen.try_emplace(key(i), next).first->second;
    if (place == next) found.first.push_back(i);
    found.place.push_back(place);
  }
  return found;
}

Distinct DistinctOf(const Tensor& x) {
  if (x.dtype() == DType::kString) {
    const std::string* strings = x.data<std::string>();
    return FindDistinct<string_view>(
        x.num_elements(), [&](int64_t i) { return string_view(strings[i]); },
        [](int64_t) { return false; });
  }
  const Keys keys = KeysOf(x);
  return FindDistinct<uint64_t>(
      x.num_elements(), [&](int64_t i) { return keys.bits[i]; },
      [&](int64_t i) { return keys.is_nan(i); });
}

template <class Index>
class UniqueKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 1) {
      return InvalidArgument("unique expects a 1D vector, got shape ", x.shape().ToString());
    }
    if (x.num_elements() > std::numeric_limits<Index>::max()) {
      return InvalidArgument("unique with out_idx=", Name(kDTypeOf<Index>),
                             " does not support input of ", x.num_elements(), " elements");
    }
    const Distinct distinct = DistinctOf(x);
    const auto count = static_cast<int64_t>(distinct.first.size());
    Tensor *y, *index;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({count}), &y));
    RETURN_IF_ERROR(ctx.Allocate(1, x.shape(), &index));
    for (int64_t k = 0; k < count; ++k) {
      CopyElements(x.dtype(), ElementAt(x.raw_data(), x.dtype(), distinct.first[k]),
                   ElementAt(y->mutable_raw_data(), x.dtype(), k), 1);
    }
    std::copy(distinct.place.begin(), distinct.place.end(), index->mutable_data<Index>());
    if (ctx.num_outputs() < 3) return OkStatus();
    Tensor* counts;
    RETURN_IF_ERROR(ctx.Allocate(2, Shape({count}), &counts));
    Zero(*counts, ctx.threads());
    for (const int64_t place : distinct.place) ++counts->mutable_data<Index>()[place];
    return OkStatus();
  }
};

Status UniqueShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape x, s.WithRank(0, 1));
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, PartialShape::UnknownOfRank(1));
  s.set_output(1, std::move(x));
  return OkStatus();
}

OP(Unique, {
               .doc = "The distinct elements y of x, and idx with x[i] = y[idx[i]].",
               .inputs = {{"x", "T"}},
               .outputs = {{"y", "T"}, {"idx", "out_idx"}},
               .types = {{"T", Hashable()}, {"out_idx", kIndex, DType::kInt32}},
               .shape = UniqueShape,
               .examples = {{.inputs = {{{{6}, {1, 3, 1, 2, 3, 3}}}}}},
           });
OP(UniqueWithCounts, {
                         .doc = "As Unique, and how often each distinct element occurs.",
                         .inputs = {{"x", "T"}},
                         .outputs = {{"y", "T"}, {"idx", "out_idx"}, {"count", "out_idx"}},
                         .types = {{"T", Hashable()}, {"out_idx", kIndex, DType::kInt32}},
                         .shape = UniqueShape,
                         .examples = {{.inputs = {{{{6}, {1, 3, 1, 2, 3, 3}}}}}},
                     });
KERNEL_BY("out_idx", Unique, UniqueKernel, int32_t, int64_t);
KERNEL_BY("out_idx", UniqueWithCounts, UniqueKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Unique, UniqueWithCounts: the distinct elements of a vector in the order of their first
// occurrence, the index of each element among them, and how often each occurs. V2: the distinct
// slices along an axis of a tensor.
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

// place[i]: the index of the distinct element that equals element i; first[k]: the index at which
// distinct element k occurs first.
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
  const ElementKeys keys = KeysOf(x);
  return FindDistinct<uint64_t>(
      x.num_elements(), [&](int64_t i) { return keys.bits[i]; },
      [&](int64_t i) { return keys.is_nan(i); });
}

// A view of a tensor as [outer, length, inner], with the axis in the middle.
struct AxisView {
  AxisView(const Shape& shape, int axis) : length(shape.dim(axis)) {
    for (int d = 0; d < axis; ++d) outer *= shape.dim(d);
    for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape.dim(d);
  }
  int64_t outer = 1, length, inner = 1;
};

// Returns the distinct slices along an axis. Slices are equal if all their elements are.
Distinct DistinctSlices(const Tensor& x, const AxisView& view) {
  const std::vector<int64_t> element = DistinctOf(x).place;
  std::vector<int64_t> slices;  // concatenated
  slices.reserve(element.size());
  for (int64_t i = 0; i < view.length; ++i) {
    for (int64_t outer = 0; outer < view.outer; ++outer) {
      const auto from = element.begin() + (outer * view.length + i) * view.inner;
      slices.insert(slices.end(), from, from + view.inner);
    }
  }
  const size_t bytes = view.outer * view.inner * sizeof(int64_t);
  return FindDistinct<string_view>(
      view.length,
      [&](int64_t i) {
        return string_view(reinterpret_cast<const char*>(slices.data()) + i * bytes, bytes);
      },
      [](int64_t) { return false; });
}

template <class Index>
class UniqueKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const int axis, Axis(ctx));
    const AxisView view(x.shape(), axis);
    if (view.length > std::numeric_limits<Index>::max()) {
      return InvalidArgument("unique with out_idx=", Name(kDTypeOf<Index>),
                             " does not support input of ", view.length, " elements");
    }
    const Distinct distinct = x.rank() == 1 ? DistinctOf(x) : DistinctSlices(x, view);
    const auto count = static_cast<int64_t>(distinct.first.size());
    Shape shape = x.shape();
    shape.set_dim(axis, count);
    Tensor *y, *index;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &y));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape({view.length}), &index));
    for (int64_t row = 0; row < view.outer * count; ++row) {
      const int64_t from = row / count * view.length + distinct.first[row % count];
      CopyElements(x.dtype(), ElementAt(x.raw_data(), x.dtype(), from * view.inner),
                   ElementAt(y->mutable_raw_data(), x.dtype(), row * view.inner), view.inner);
    }
    std::copy(distinct.place.begin(), distinct.place.end(), index->mutable_data<Index>());
    if (ctx.num_outputs() < 3) return OkStatus();
    Tensor* counts;
    RETURN_IF_ERROR(ctx.Allocate(2, Shape({count}), &counts));
    Zero(*counts, ctx.threads());
    for (const int64_t place : distinct.place) ++counts->mutable_data<Index>()[place];
    return OkStatus();
  }

 private:
  static StatusOr<int> Axis(const KernelContext& ctx) {
    const Tensor& x = ctx.input(0);
    Dims axis;
    if (ctx.num_inputs() == 2) {
      ASSIGN_OR_RETURN(axis, IntVector(ctx.input(1), "axis"));
      if (axis.size() > 1) {
        return InvalidArgument("axis does not support input tensors larger than 1 elements");
      }
    }
    if (!axis.empty()) return NormalAxis(axis[0], x.rank(), "axis");
    if (x.rank() == 1) return 0;
    return InvalidArgument("unique expects a 1D vector, got shape ", x.shape().ToString());
  }
};

Status UniqueShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape x, s.WithRank(0, 1));
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, PartialShape::UnknownOfRank(1));
  s.set_output(1, std::move(x));
  return OkStatus();
}

Status UniqueV2Shape(ShapeScope& s) {
  const int64_t rank = s.input(0).known_rank() ? s.input(0).rank() : -1;
  if (rank >= 0) s.set_output(0, PartialShape::UnknownOfRank(static_cast<int>(rank)));
  for (int i = 1; i < s.num_outputs(); ++i) s.set_output(i, PartialShape::UnknownOfRank(1));
  return OkStatus();
}

OpDef UniqueV2Op(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"x", "T"}, {"axis", "Taxis"}},
      .outputs = {{"y", "T"}, {"idx", "out_idx"}},
      .types = {{"T", Hashable()},
                {"Taxis", kIndex, DType::kInt64},
                {"out_idx", kIndex, DType::kInt32}},
      .shape = UniqueV2Shape,
      .examples = {{.inputs = {{{{3, 2}, {1, 2, 1, 2, 3, 3}}}, {{{1}, {0}}}}},
                   {.inputs = {{{{4}, {1, 3, 1, 3}}}, {{{0}}}}}},
      .distinct = true,
  };
}
OpDef UniqueWithCountsV2Op() {
  OpDef op =
      UniqueV2Op("The same as UniqueV2, and also returns how often each distinct slice occurs.");
  op.outputs.push_back({"count", "out_idx"});
  return op;
}

OP(UniqueV2) {
  return UniqueV2Op(
      "Returns the distinct slices y of x along an axis (if `axis` is empty, x must be "
      "a vector), and idx, the index in y of each slice of x.");
}

OP(UniqueWithCountsV2) { return UniqueWithCountsV2Op(); }
OP(Unique) {
  return {
      .doc = "Returns the distinct elements y of x, and idx with x[i] = y[idx[i]].",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}, {"idx", "out_idx"}},
      .types = {{"T", Hashable()}, {"out_idx", kIndex, DType::kInt32}},
      .shape = UniqueShape,
      .examples = {{.inputs = {{{{6}, {1, 3, 1, 2, 3, 3}}}}}},
      .distinct = true,
  };
}

OP(UniqueWithCounts) {
  return {
      .doc = "The same as Unique, and also returns how often each distinct element occurs.",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}, {"idx", "out_idx"}, {"count", "out_idx"}},
      .types = {{"T", Hashable()}, {"out_idx", kIndex, DType::kInt32}},
      .shape = UniqueShape,
      .examples = {{.inputs = {{{{6}, {1, 3, 1, 2, 3, 3}}}}}},
      .distinct = true,
  };
}
KERNEL_BY("out_idx", Unique, UniqueKernel, int32_t, int64_t);
KERNEL_BY("out_idx", UniqueV2, UniqueKernel, int32_t, int64_t);
KERNEL_BY("out_idx", UniqueWithCountsV2, UniqueKernel, int32_t, int64_t);
KERNEL_BY("out_idx", UniqueWithCounts, UniqueKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock

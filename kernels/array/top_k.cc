// SPDX-License-Identifier: Apache-2.0
//
// TopK (k an attribute), TopKV2 (k an input): the k largest elements of each row and their indices.
// If elements are equal, the one with the lower index comes first. NthElement: only the n-th
// element in order.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

// Maps numbers to unsigned integers of the same order, so that selection is compiled for two widths
// instead of every type. A NaN sorts above infinity, or below -infinity, depending on its sign.
template <class Bits, bool kFloat, bool kSigned>
Bits Sortable(Bits bits) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  if constexpr (kFloat) {
    if (bits == kSign) return kSign;  // -0.0 as 0.0
    return static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
  }
  return static_cast<Bits>(kSigned ? bits ^ kSign : bits);
}

// The key by which elements are compared: first the number, then the inverted index, so that the
// lower index wins.
struct Narrow {
  uint64_t bits;
  Narrow(uint64_t number, uint32_t index) : bits(number << 32 | static_cast<uint32_t>(~index)) {}
  uint32_t index() const { return ~static_cast<uint32_t>(bits); }
  bool operator>(const Narrow& other) const { return bits > other.bits; }
};
struct Wide {
  uint64_t number;
  uint32_t place;
  Wide(uint64_t number, uint32_t index) : number(number), place(index) {}
  uint32_t index() const { return place; }
  bool operator>(const Wide& other) const {
    return number != other.number ? number > other.number : place < other.place;
  }
};

// Moves the k largest entries to the front. If k is small, a heap of k entries is faster than
// partitioning all, because most entries never enter the heap.
template <class Entry>
void Select(std::vector<Entry>& entries, int64_t k, bool sorted) {
  const auto larger = [](const Entry& a, const Entry& b) { return a > b; };
  const auto end = entries.begin() + k;
  if (k < static_cast<int64_t>(entries.size()) / 16) {
    std::partial_sort(entries.begin(), end, entries.end(), larger);
    return;
  }
  if (end != entries.end()) std::nth_element(entries.begin(), end, entries.end(), larger);
  if (sorted) std::sort(entries.begin(), end, larger);
}

// Writes the indices of the k largest elements of a row of `columns` to `places`; the largest first
// if `sorted`, else in any order.
template <class Bits, bool kFloat, bool kSigned>
void TopOfRow(const void* row, int64_t columns, int64_t k, bool sorted, int32_t* places) {
  using Entry = std::conditional_t<sizeof(Bits) <= 4, Narrow, Wide>;
  const Bits* bits = static_cast<const Bits*>(row);
  std::vector<Entry> entries;
  entries.reserve(columns);
  for (int64_t i = 0; i < columns; ++i) {
    entries.emplace_back(Sortable<Bits, kFloat, kSigned>(bits[i]), static_cast<uint32_t>(i));
  }
  Select(entries, k, sorted);
  for (int64_t i = 0; i < k; ++i) places[i] = static_cast<int32_t>(entries[i].index());
}

using TopOfRowFn = void (*)(const void*, int64_t, int64_t, bool, int32_t*);
TopOfRowFn TopOfRowFor(DType dtype) {
  switch (dtype) {
    case DType::kHalf:
    case DType::kBfloat16:
      return TopOfRow<uint16_t, true, true>;
    case DType::kFloat:
      return TopOfRow<uint32_t, true, true>;
    case DType::kDouble:
      return TopOfRow<uint64_t, true, true>;
    case DType::kInt8:
      return TopOfRow<uint8_t, false, true>;
    case DType::kInt16:
      return TopOfRow<uint16_t, false, true>;
    case DType::kInt32:
      return TopOfRow<uint32_t, false, true>;
    case DType::kInt64:
      return TopOfRow<uint64_t, false, true>;
    case DType::kUint8:
      return TopOfRow<uint8_t, false, false>;
    case DType::kUint16:
      return TopOfRow<uint16_t, false, false>;
    case DType::kUint32:
      return TopOfRow<uint32_t, false, false>;
    case DType::kUint64:
      return TopOfRow<uint64_t, false, false>;
    default:
      return nullptr;
  }
}

// Writes `places`, indices within rows of `columns` elements, to `indices` as numbers of type T.
// InvalidArgument if T cannot hold all indices of a row.
template <class T>
Status WriteIndices(absl::Span<const int32_t> places, int64_t columns, Tensor* indices) {
  if (columns - 1 > std::numeric_limits<T>::max()) {
    return InvalidArgument("rows of ", columns, " elements are too long for ", Name(kDTypeOf<T>),
                           " indices");
  }
  std::copy(places.begin(), places.end(), indices->mutable_data<T>());
  return OkStatus();
}

Status FindTop(KernelContext& ctx, int64_t k, bool sorted) {
  const Tensor& input = ctx.input(0);
  if (k < 0) return InvalidArgument("Need k >= 0, got ", k);
  if (input.rank() < 1) return InvalidArgument("input must be >= 1-D, got shape []");
  const int64_t columns = input.dim(input.rank() - 1);
  if (columns < k) {
    return InvalidArgument("input must have at least k columns. Had ", columns, ", needed ", k);
  }
  if (columns > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("rows of ", columns, " elements are too long for int32 indices");
  }
  const TopOfRowFn top_of_row = TopOfRowFor(input.dtype());
  if (top_of_row == nullptr) return Unimplemented("no order on ", Name(input.dtype()));
  Shape shape = input.shape();
  shape.set_dim(shape.rank() - 1, k);
  Tensor *values, *indices;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &values));
  RETURN_IF_ERROR(ctx.Allocate(1, shape, &indices));
  if (shape.num_elements() == 0) return OkStatus();
  const DType dtype = input.dtype();
  const bool narrow = indices->dtype() == DType::kInt32;
  std::vector<int32_t> others(narrow ? 0 : shape.num_elements());
  int32_t* places = narrow ? indices->mutable_data<int32_t>() : others.data();
  void* out = values->mutable_raw_data();
  ctx.threads().ParallelFor(
      input.num_elements() / columns, 50 + 3.0 * columns, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const void* from = ElementAt(input.raw_data(), dtype, row * columns);
          top_of_row(from, columns, k, sorted, places + row * k);
          for (int64_t i = row * k; i < (row + 1) * k; ++i) {
            CopyElements(dtype, ElementAt(from, dtype, places[i]), ElementAt(out, dtype, i), 1);
          }
        }
      });
  if (narrow) return OkStatus();
  return indices->dtype() == DType::kInt64 ? WriteIndices<int64_t>(others, columns, indices)
                                           : WriteIndices<int16_t>(others, columns, indices);
}

// Returns the n-th smallest, or largest, element of each row, counted from 0.
class NthElementKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("reverse", &largest_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t n, IntScalar(ctx.input(1), "n"));
    const Tensor& input = ctx.input(0);
    if (input.rank() < 1) return InvalidArgument("input must be >= 1-D, got shape []");
    const int64_t columns = input.dim(input.rank() - 1);
    if (n < 0 || n >= columns) {
      return InvalidArgument("n must be in [0, ", columns, "), the columns of input; it is ", n);
    }
    if (columns > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("rows of ", columns, " elements are too long");
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(input.shape().dims().first(input.rank() - 1)));
    Tensor* values;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &values));
    const DType dtype = input.dtype();
    const TopOfRowFn top_of_row = TopOfRowFor(dtype);
    const int64_t k = largest_ ? n + 1 : columns - n;
    void* out = values->mutable_raw_data();
    ctx.threads().ParallelFor(
        shape.num_elements(), 50 + 10.0 * columns, [&](int64_t begin, int64_t end) {
          std::vector<int32_t> places(k);
          for (int64_t row = begin; row < end; ++row) {
            const void* from = ElementAt(input.raw_data(), dtype, row * columns);
            top_of_row(from, columns, k, /*sorted=*/true, places.data());
            CopyElements(dtype, ElementAt(from, dtype, places[k - 1]), ElementAt(out, dtype, row),
                         1);
          }
        });
    return OkStatus();
  }

 private:
  bool largest_ = false;
};

Status NthElementShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape input, s.WithRankAtLeast(0, 1));
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  if (input.known_rank()) s.set_output(0, SubShape(input, 0, input.rank() - 1));
  return OkStatus();
}

// Splits the gradient evenly among the elements that equal the n-th.
std::vector<Gradient> NthElementGradient(const GradientScope& g) {
  const Output last = g.Const<int32_t>(-1);
  const Output chosen = Cast(Equal(ExpandDims(g.y(), last), g.x()), g.dtype());
  const Output share = ExpandDims(g.dy(), last) / Sum(chosen, last, /*keep_dims=*/true);
  return {share * chosen, Gradient()};
}

class TopKKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("k", &k_));
    return node.Attr("sorted", &sorted_);
  }
  Status Compute(KernelContext& ctx) override { return FindTop(ctx, k_, sorted_); }

 private:
  int64_t k_ = 0;
  bool sorted_ = true;
};

class TopKV2Kernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("sorted", &sorted_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t k, IntScalar(ctx.input(1), "k"));
    return FindTop(ctx, k, sorted_);
  }

 private:
  bool sorted_ = true;
};

Status ShapeFor(ShapeScope& s, int64_t k) {
  ASSIGN_OR_RETURN(PartialShape shape, s.WithRankAtLeast(0, 1));
  if (!shape.known_rank()) return OkStatus();
  const int64_t columns = shape.dim(shape.rank() - 1);
  if (columns >= 0 && columns < k) {
    return InvalidArgument("input must have at least k columns. Had ", columns, ", needed ", k);
  }
  shape.set_dim(shape.rank() - 1, k);
  s.set_output(0, shape);
  s.set_output(1, shape);
  return OkStatus();
}

Status TopKV2Shape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  std::vector<int64_t> k;
  if (!s.ConstantInts(1, &k)) return ShapeFor(s, PartialShape::kUnknown);
  if (k[0] < 0) return InvalidArgument("Need k >= 0, got ", k[0]);
  return ShapeFor(s, k[0]);
}

// Returns zeros with each row's dy at the indices of its k largest elements.
std::vector<Gradient> TopKGradient(const GradientScope& g) {
  const auto vector = [&](std::vector<int32_t> values) {
    return g.Const(Tensor::Vector<int32_t>(values));
  };
  const Output zero = g.Const<int32_t>(0), one = g.Const<int32_t>(1);
  const auto last = [&](Output x) {
    return Call("StridedSlice", {ShapeOf(x), vector({-1}), vector({0}), vector({1})},
                {{"end_mask", 1}, {"shrink_axis_mask", 1}});
  };
  const Output columns = last(g.x()), k = last(g.y(1));
  const Output total = SizeOf(g.x());
  // Converts the indices of row r to indices into the whole tensor.
  const Output indices = g.y(1).dtype() == DType::kInt32 ? g.y(1) : Cast(g.y(1), DType::kInt32);
  const Output by_row = Reshape(indices, Pack({g.Const<int32_t>(-1), k}));
  const Output first = ExpandDims(Range(zero, total, columns), one);
  const Output places = Reshape(by_row + first, vector({-1, 1}));
  const Output flat =
      Call("ScatterNd", {places, Reshape(g.dy(0), vector({-1})), Reshape(total, vector({1}))});
  std::vector<Gradient> dx(g.num_inputs());
  dx[0] = Reshape(flat, ShapeOf(g.x()));
  return dx;
}

const DTypes kIndexTypes = {DType::kInt16, DType::kInt32, DType::kInt64};

OP(TopK) {
  return {
      .doc = "Returns the k largest elements along the last dimension, and their indices.",
      .inputs = {{"input", "T"}},
      .outputs = {{"values", "T"}, {"indices", "int32"}},
      .types = {{"T", kReal}},
      .attrs = {{"k", Ints{.min = 0}}, {"sorted", true}},
      .shape = [](ShapeScope& s) { return ShapeFor(s, s.attr<int64_t>("k")); },
      .gradient = TopKGradient,
      .examples = {{.inputs = {{{{2, 4}}}}, .attrs = {{"k", 2}}}},
  };
}

OP(TopKV2) {
  return {
      .doc = "Returns the k largest elements along the last dimension, and their indices.",
      .inputs = {{"input", "T"}, {"k", "Tk"}},
      .outputs = {{"values", "T"}, {"indices", "index_type"}},
      .types = {{"T", kReal},
                {"Tk", kIndexTypes, DType::kInt32},
                {"index_type", kIndexTypes, DType::kInt32}},
      .attrs = {{"sorted", true}},
      .shape = TopKV2Shape,
      .gradient = TopKGradient,
      .examples = {{.inputs = {{{{2, 4}}}, {{.values = {2}}}}}},
  };
}

OP(NthElement) {
  return {
      .doc =
          "Returns the n-th smallest element of each row or, with `reverse`, the n-th largest; n "
          "counts from 0.",
      .inputs = {{"input", "T"}, {"n", "int32"}},
      .outputs = {{"values", "T"}},
      .types = {{"T", kReal}},
      .attrs = {{"reverse", false}},
      .shape = NthElementShape,
      .gradient = NthElementGradient,
      .examples = {{.inputs = {{{{2, 4}}}, {{.values = {1}}}}},
                   {.inputs = {{{{2, 4}}}, {{.values = {0}}}}, .attrs = {{"reverse", true}}}},
  };
}
KERNEL_ANY_TYPE(TopK, TopKKernel);
KERNEL_ANY_TYPE(NthElement, NthElementKernel);
KERNEL_ANY_TYPE(TopKV2, TopKV2Kernel);

}  // namespace
}  // namespace penstock

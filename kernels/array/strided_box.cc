// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/strided_box.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "absl/strings/str_join.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

constexpr int kMaxElements = 32;  // some clients compute masks in 32 bits
constexpr int64_t kUnknown = PartialShape::kUnknown;

bool Bit(int64_t mask, int64_t i) { return (mask >> i & 1) != 0; }

// A dimension of the input, and the index of the expression's element that applies to it; -1: the
// whole dimension is taken.
struct Term {
  int element = -1;
  bool shrink = false;
};

// Maps the elements of the expression to dimensions of the input and to new axes. `layout` lists
// the dimensions of the result: a dimension of the input (>= 0) or a new axis (-1). Shrunk
// dimensions are not in it.
struct Expansion {
  absl::InlinedVector<Term, 4> terms;
  absl::InlinedVector<int, 4> layout;
};

StatusOr<Expansion> Expand(const StridedSliceMasks& masks, int64_t count, int rank) {
  const uint64_t valid = (uint64_t{1} << count) - 1;
  const uint64_t ellipsis = static_cast<uint64_t>(masks.ellipsis) & valid;
  if (absl::popcount(static_cast<uint64_t>(masks.ellipsis)) > 1) {
    return InvalidArgument("Multiple ellipses in slice spec not allowed");
  }
  int64_t named = 0;  // elements of the expression that apply to one dimension
  for (int64_t i = 0; i < count; ++i) {
    named += !Bit(ellipsis, i) && !Bit(masks.new_axis, i);
  }
  if (named > rank) {
    return InvalidArgument("Index out of range using input dim ", rank, "; input has only ", rank,
                           " dims");
  }
  Expansion expansion;
  const auto in_full = [&](int64_t dimensions) {
    for (int64_t k = 0; k < dimensions; ++k) {
      expansion.layout.push_back(static_cast<int>(expansion.terms.size()));
      expansion.terms.push_back({});
    }
  };
  for (int i = 0; i < count; ++i) {
    if (Bit(ellipsis, i)) {
      in_full(rank - named);
    } else if (Bit(masks.new_axis, i)) {
      expansion.layout.push_back(-1);
    } else {
      const bool shrink = Bit(masks.shrink_axis, i);
      if (!shrink) expansion.layout.push_back(static_cast<int>(expansion.terms.size()));
      expansion.terms.push_back({i, shrink});
    }
  }
  if (ellipsis == 0) in_full(rank - named);
  return expansion;
}

StatusOr<StridedBox::Dim> SingleIndex(int64_t index, int64_t size, int dimension) {
  if (size == kUnknown) return StridedBox::Dim{.count = 1};
  const int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) {
    return InvalidArgument("slice index ", index, " of dimension ", dimension, " out of bounds.");
  }
  return StridedBox::Dim{.begin = at, .count = 1};
}

// Returns the range begin:end:stride by Python's rules. A masked begin or end is the first or last
// position in the direction of the stride.
StridedBox::Dim Range(const int64_t* begin, const int64_t* end, int64_t stride, int64_t size) {
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  const auto clamp = [&](int64_t x) { return std::clamp(x < 0 ? x + size : x, low, high); };
  const int64_t first = begin != nullptr ? clamp(*begin) : (stride > 0 ? low : high);
  const int64_t last = end != nullptr ? clamp(*end) : (stride > 0 ? high : low);
  const int64_t distance = last - first;
  if (distance == 0 || (distance < 0) != (stride < 0)) return {.count = 0};
  const int64_t count = distance / stride + (distance % stride != 0);
  return {.begin = first, .stride = count > 1 ? stride : 1, .count = count};
}

StatusOr<StridedBox::Dim> Resolve(const Term& term, const StridedSliceMasks& masks,
                                  const StridedSliceVectors& vectors, int64_t size, int dimension) {
  const int i = term.element;
  if (i < 0) return StridedBox::Dim{.count = size};
  if (vectors.strides != nullptr && (*vectors.strides)[i] == 0) {
    return InvalidArgument("strides[", i, "] must be non-zero");
  }
  if (term.shrink) {
    if (vectors.strides != nullptr && (*vectors.strides)[i] < 0) {
      return InvalidArgument("only stride 1 allowed on non-range indexing.");
    }
    if (vectors.begin == nullptr) return StridedBox::Dim{.count = 1};
    return SingleIndex((*vectors.begin)[i], size, dimension);
  }
  const bool from_start = Bit(masks.begin, i), to_end = Bit(masks.end, i);
  if (size == kUnknown || vectors.strides == nullptr || (!from_start && vectors.begin == nullptr) ||
      (!to_end && vectors.end == nullptr)) {
    return StridedBox::Dim{.count = kUnknown};
  }
  return Range(from_start ? nullptr : &(*vectors.begin)[i], to_end ? nullptr : &(*vectors.end)[i],
               (*vectors.strides)[i], size);
}

}  // namespace

Status StridedSliceMasks::Init(const KernelInit& node) {
  RETURN_IF_ERROR(node.Attr("begin_mask", &begin));
  RETURN_IF_ERROR(node.Attr("end_mask", &end));
  RETURN_IF_ERROR(node.Attr("ellipsis_mask", &ellipsis));
  RETURN_IF_ERROR(node.Attr("new_axis_mask", &new_axis));
  return node.Attr("shrink_axis_mask", &shrink_axis);
}

StridedSliceMasks StridedSliceMasks::Of(const Attrs& attrs) {
  const auto mask = [&](string_view name) {
    const auto it = attrs.find(name);
    CHECK(it != attrs.end() && it->second.get<int64_t>() != nullptr, name);
    return *it->second.get<int64_t>();
  };
  return {.begin = mask("begin_mask"),
          .end = mask("end_mask"),
          .ellipsis = mask("ellipsis_mask"),
          .new_axis = mask("new_axis_mask"),
          .shrink_axis = mask("shrink_axis_mask")};
}

std::vector<AttrDef> StridedSliceMasks::AttrDefs() {
  return {{"begin_mask", 0},
          {"end_mask", 0},
          {"ellipsis_mask", 0},
          {"new_axis_mask", 0},
          {"shrink_axis_mask", 0}};
}

Attrs StridedSliceMasks::AttrsOf(const Attrs& attrs) {
  Attrs masks;
  for (const AttrDef& mask : AttrDefs()) masks[mask.name] = attrs.at(mask.name);
  return masks;
}

Dims StridedBox::counts() const {
  Dims counts;
  for (const Dim& dim : dims) counts.push_back(dim.count);
  return counts;
}

StatusOr<StridedBox> ResolveStridedSlice(const StridedSliceMasks& masks,
                                         const StridedSliceVectors& vectors,
                                         const PartialShape& input) {
  if (vectors.count >= kMaxElements) {
    return InvalidArgument("a slice of ", vectors.count, " elements; at most ", kMaxElements - 1);
  }
  ASSIGN_OR_RETURN(const Expansion expansion, Expand(masks, vectors.count, input.rank()));
  StridedBox box;
  for (int d = 0; d < input.rank(); ++d) {
    const int64_t size = input.dim(d);
    ASSIGN_OR_RETURN(const StridedBox::Dim dim,
                     Resolve(expansion.terms[d], masks, vectors, size, d));
    box.whole = box.whole && dim.begin == 0 && dim.stride == 1 && dim.count == size;
    box.dims.push_back(dim);
  }
  for (const int d : expansion.layout) box.shape.push_back(d < 0 ? 1 : box.dims[d].count);
  return box;
}

StatusOr<StridedBox> ResolveStridedSlice(const StridedSliceMasks& masks, const Tensor& begin,
                                         const Tensor& end, const Tensor& strides,
                                         const Shape& input) {
  ASSIGN_OR_RETURN(const Dims b, IntVector(begin, "begin"));
  const int64_t count = static_cast<int64_t>(b.size());
  ASSIGN_OR_RETURN(const Dims e, IntVector(end, "end", count));
  ASSIGN_OR_RETURN(const Dims s, IntVector(strides, "strides", count));
  return ResolveStridedSlice(masks, {.begin = &b, .end = &e, .strides = &s, .count = count}, input);
}

int64_t WalkBox(const StridedBox& box, const Shape& whole, BoxSide side, StridedCopy* copy) {
  const bool source = side == BoxSide::kSource;
  const Dims strides = DenseStrides(whole.dims()), dense = DenseStrides(box.counts());
  int64_t offset = 0;
  for (size_t i = 0; i < box.dims.size(); ++i) {
    const StridedBox::Dim& dim = box.dims[i];
    const int64_t there = dim.stride * strides[i];
    offset += dim.begin * strides[i];
    copy->Add(dim.count, source ? there : dense[i], source ? dense[i] : there);
  }
  return offset;
}

Status CheckValueOfBox(const StridedBox& box, const Tensor& value, string_view name) {
  if (value.shape().dims() == absl::Span<const int64_t>(box.shape)) return OkStatus();
  return InvalidArgument(name, " must have shape [", absl::StrJoin(box.shape, ","), "], has ",
                         value.shape().ToString());
}

void StoreInBox(const StridedBox& box, const Tensor& value, Tensor& whole, Scheduler& threads) {
  StridedCopy copy;
  const int64_t offset = WalkBox(box, whole.shape(), BoxSide::kDestination, &copy);
  CopyStrided(whole.dtype(), copy, value.raw_data(),
              ElementAt(whole.mutable_raw_data(), whole.dtype(), offset), threads);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/tensor_slice.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

// Overlaps are searched pair by pair, so the time grows with the square of this number.
constexpr size_t kSlicesMax = 16384;

Status BadSlice(string_view text) {
  return InvalidArgument("'", text,
                         "' is not a slice: expected one 'start,length' or '-' for each ",
                         "dimension, joined by ':'");
}

// The range of dimension d that is in both boxes.
struct Common {
  int64_t begin, end;
};
Common CommonExtent(const TensorSlice& a, const TensorSlice& b, size_t d) {
  const auto& x = a.extents[d];
  const auto& y = b.extents[d];
  return {std::max(x.start, y.start), std::min(x.start + x.length, y.start + y.length)};
}

}  // namespace

StatusOr<TensorSlice> TensorSlice::Parse(string_view text) {
  TensorSlice slice;
  if (text.empty()) return slice;  // "" is the slice of a scalar
  for (const string_view part : absl::StrSplit(text, ':')) {
    Extent extent;
    if (part != "-") {
      const std::vector<string_view> numbers = absl::StrSplit(part, ',');
      if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &extent.start) ||
          !absl::SimpleAtoi(numbers[1], &extent.length) || extent.start < 0 || extent.length <= 0) {
        return BadSlice(text);
      }
    }
    slice.extents.push_back(extent);
  }
  return slice;
}

std::string TensorSlice::ToString() const {
  std::string text;
  for (const Extent& extent : extents) {
    if (!text.empty()) text += ':';
    if (extent.length == kWhole) {
      text += '-';
    } else {
      StrAppend(&text, extent.start, ",", extent.length);
    }
  }
  return text;
}

StatusOr<TensorSlice> TensorSlice::Within(const Shape& shape) const {
  const auto does_not_fit = [&] {
    return InvalidArgument("slice '", ToString(), "' does not fit in shape ", shape.ToString());
  };
  if (static_cast<int>(extents.size()) != shape.rank()) return does_not_fit();
  TensorSlice result = *this;
  for (int d = 0; d < shape.rank(); ++d) {
    Extent& extent = result.extents[d];
    if (extent.length == kWhole && extent.start == 0) extent.length = shape.dim(d);
    if (extent.start < 0 || extent.length < 0 || extent.start > shape.dim(d) ||
        extent.length > shape.dim(d) - extent.start) {
      return does_not_fit();
    }
  }
  return result;
}

Shape TensorSlice::shape() const {
  Dims dims;
  for (const Extent& extent : extents) dims.push_back(extent.length);
  return Shape(dims);
}

StatusOr<ShapeAndSlice> ShapeAndSlice::Parse(string_view text) {
  std::vector<string_view> words = absl::StrSplit(text, ' ');
  if (words.size() < 2) {
    return InvalidArgument("'", text, "' is not a shape and a slice: expected the dimensions and ",
                           "then the slice, separated by blanks");
  }
  ASSIGN_OR_RETURN(TensorSlice slice, TensorSlice::Parse(words.back()));
  words.pop_back();
  Dims dims;
  for (const string_view word : words) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(word, &size)) {
      return InvalidArgument("'", word, "' in '", text, "' is not a dimension");
    }
    dims.push_back(size);
  }
  ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  RETURN_IF_ERROR(slice.Within(shape).status());
  return ShapeAndSlice{std::move(shape), std::move(slice)};
}

Status CheckSliceShape(string_view name, const Shape& whole, const TensorSlice& slice,
                       const Shape& actual) {
  ASSIGN_OR_RETURN(const TensorSlice box, slice.Within(whole));
  if (box.shape() == actual) return OkStatus();
  return InvalidArgument("slice '", slice.ToString(), "' of tensor '", name, "' has shape ",
                         box.shape().ToString(), ", is given as ", actual.ToString());
}

bool Overlap(const TensorSlice& a, const TensorSlice& b) {
  for (size_t d = 0; d < a.extents.size(); ++d) {
    const Common common = CommonExtent(a, b, d);
    if (common.begin >= common.end) return false;
  }
  return true;
}

int64_t CommonElements(const TensorSlice& a, const TensorSlice& b) {
  int64_t elements = 1;
  for (size_t d = 0; d < a.extents.size(); ++d) {
    const Common common = CommonExtent(a, b, d);
    elements *= std::max<int64_t>(0, common.end - common.begin);
  }
  return elements;
}

Status CheckDisjoint(const std::vector<TensorSlice>& boxes) {
  if (boxes.size() > kSlicesMax) {
    return Unimplemented(boxes.size(), " slices; at most ", kSlicesMax, " are supported");
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (Overlap(boxes[i], boxes[j])) {
        return DataLoss("slices '", boxes[j].ToString(), "' and '", boxes[i].ToString(),
                        "' overlap");
      }
    }
  }
  return OkStatus();
}

void ForEachCommonRun(const TensorSlice& from, const TensorSlice& to,
                      absl::FunctionRef<void(int64_t, int64_t, int64_t)> run) {
  if (!Overlap(from, to)) return;
  const int rank = static_cast<int>(from.extents.size());
  // A run spans the innermost dimensions that both boxes cover completely, and a range of the next
  // dimension.
  int64_t count = 1;
  int outer = rank;  // dimensions [0, outer) are iterated one index at a time
  bool whole = true;
  while (outer > 0 && whole) {
    --outer;
    const Common common = CommonExtent(from, to, outer);
    const int64_t length = common.end - common.begin;
    count *= length;
    whole = length == from.extents[outer].length && length == to.extents[outer].length;
  }

  std::vector<int64_t> at(rank);
  for (int d = 0; d < rank; ++d) at[d] = CommonExtent(from, to, d).begin;
  const auto offset_in = [&](const TensorSlice& box) {
    int64_t offset = 0;
    for (int d = 0; d < rank; ++d) {
      offset = offset * box.extents[d].length + at[d] - box.extents[d].start;
    }
    return offset;
  };
  for (;;) {
    run(offset_in(from), offset_in(to), count);
    int d = outer - 1;
    for (; d >= 0; --d) {
      const Common common = CommonExtent(from, to, d);
      if (++at[d] < common.end) break;
      at[d] = common.begin;
    }
    if (d < 0) return;
  }
}

}  // namespace penstock

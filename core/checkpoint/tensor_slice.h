// SPDX-License-Identifier: Apache-2.0
//
// TensorSlice: a box within a tensor, by which parts of a partitioned variable are saved and read.
//
// A value. Text form: one "start,length" per dimension, "-" for a whole one, joined by ':'.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace penstock {

struct TensorSlice {
  static constexpr int64_t kWhole = -1;
  struct Extent {
    int64_t start = 0;
    int64_t length = kWhole;  // kWhole: the dimension from 0 to its end
    bool operator==(const Extent&) const = default;
  };
  std::vector<Extent> extents;

  static TensorSlice Whole(int rank) { return {std::vector<Extent>(rank)}; }
  static StatusOr<TensorSlice> Parse(string_view text);
  std::string ToString() const;
  bool operator==(const TensorSlice&) const = default;

  // Lengths in the place of every kWhole; InvalidArgument where the box does not fit in `shape`.
  StatusOr<TensorSlice> Within(const Shape& shape) const;
  // The shape of the box. REQUIRES a result of Within.
  Shape shape() const;
};

// "4 3 0,2:-" of a SaveV2 or RestoreV2 node: the shape of the whole tensor, and the part meant.
struct ShapeAndSlice {
  Shape shape;
  TensorSlice slice;
  static StatusOr<ShapeAndSlice> Parse(string_view text);
};

// InvalidArgument where `slice` of a tensor `name` of shape `whole` has not the shape `actual`.
Status CheckSliceShape(string_view name, const Shape& whole, const TensorSlice& slice,
                       const Shape& actual);

// The key in a bundle's index of the part `slice` of the tensor `name` (FORMAT.md).
std::string SliceKey(string_view name, const TensorSlice& slice);

// True where the boxes have an element in common. REQUIRES results of Within of one shape.
bool Overlap(const TensorSlice& a, const TensorSlice& b);

// The number of elements that both boxes have. REQUIRES the same.
int64_t CommonElements(const TensorSlice& a, const TensorSlice& b);

// DataLoss where two of the boxes overlap, Unimplemented for more of them than can be compared.
// REQUIRES the same.
Status CheckDisjoint(const std::vector<TensorSlice>& boxes);

// Calls run(from_element, to_element, count) for every run of elements that is contiguous in both
// of two dense boxes of one tensor, in ascending order, covering what they have in common.
// REQUIRES results of Within of one shape.
void ForEachCommonRun(const TensorSlice& from, const TensorSlice& to,
                      absl::FunctionRef<void(int64_t, int64_t, int64_t)> run);

}  // namespace penstock

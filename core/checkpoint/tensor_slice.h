// SPDX-License-Identifier: Apache-2.0
//
// TensorSlice: a box within a tensor. Partitioned variables are saved and read as such slices.
//
// Text form: one "start,length" per dimension, or "-" for a complete dimension, joined by ':'.
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
    int64_t length = kWhole;  // kWhole: all elements of the dimension
    bool operator==(const Extent&) const = default;
  };
  std::vector<Extent> extents;

  static TensorSlice Whole(int rank) { return {std::vector<Extent>(rank)}; }
  static StatusOr<TensorSlice> Parse(string_view text);
  std::string ToString() const;
  bool operator==(const TensorSlice&) const = default;

  // Returns the box in which every kWhole is replaced by the size of its dimension; InvalidArgument
  // if the box does not fit in `shape`.
  StatusOr<TensorSlice> Within(const Shape& shape) const;
  // Returns the shape of the box. REQUIRES: the box is a result of Within.
  Shape shape() const;
};

// The text "4 3 0,2:-" of a SaveV2 or RestoreV2 node: the shape of the whole tensor, and the slice.
struct ShapeAndSlice {
  Shape shape;
  TensorSlice slice;
  static StatusOr<ShapeAndSlice> Parse(string_view text);
};

// InvalidArgument unless `slice` of the tensor `name` of shape `whole` has the shape `actual`.
Status CheckSliceShape(string_view name, const Shape& whole, const TensorSlice& slice,
                       const Shape& actual);

// Returns the key under which a bundle's index lists this slice of the tensor `name` (FORMAT.md).
std::string SliceKey(string_view name, const TensorSlice& slice);

// Returns true if the boxes have an element in common. REQUIRES for this function and those below:
// all boxes are results of Within, for the same shape.
bool Overlap(const TensorSlice& a, const TensorSlice& b);

// Returns the number of elements that are in both boxes.
int64_t CommonElements(const TensorSlice& a, const TensorSlice& b);

// DataLoss if two of the boxes overlap, Unimplemented if there are too many to compare.
Status CheckDisjoint(const std::vector<TensorSlice>& boxes);

// Finds the runs of elements that are contiguous in both boxes, if each box is stored as a dense
// tensor. Calls run(from_element, to_element, count) for each of them, in ascending order; the
// first two arguments are the positions of the run's first element in the two tensors. The runs
// cover the intersection of the boxes.
void ForEachCommonRun(const TensorSlice& from, const TensorSlice& to,
                      absl::FunctionRef<void(int64_t, int64_t, int64_t)> run);

}  // namespace penstock

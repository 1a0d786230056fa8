// SPDX-License-Identifier: Apache-2.0
//
// StridedBox: the elements that a Python slice expression such as x[1:, ..., newaxis, ::-2, 3]
// selects from a tensor of a given shape. StridedSlice and related ops encode the expression in the
// vectors begin, end and strides and in five bit masks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "kernels/array/strided_copy.h"

namespace penstock {

// Bit i of a mask refers to element i of the vectors.
struct StridedSliceMasks {
  int64_t begin = 0;        // begin[i] is left out
  int64_t end = 0;          // end[i] is left out
  int64_t ellipsis = 0;     // element i is "..."; at most one bit
  int64_t new_axis = 0;     // element i is newaxis
  int64_t shrink_axis = 0;  // element i is a single index: the dimension is removed

  Status Init(const KernelInit& node);
  static StridedSliceMasks Of(const Attrs& attrs);
  // Declares the five mask attributes of an op.
  static std::vector<AttrDef> AttrDefs();
  // Copies the five mask attributes from a node's attributes, for another op on the same slice.
  static Attrs AttrsOf(const Attrs& attrs);
};

// The vectors, or null for those whose values are not known yet.
struct StridedSliceVectors {
  const Dims* begin = nullptr;
  const Dims* end = nullptr;
  const Dims* strides = nullptr;
  int64_t count = 0;  // length of each vector
};

struct StridedBox {
  struct Dim {
    int64_t begin = 0;
    int64_t stride = 1;
    int64_t count = 0;  // kUnknown if not known
  };
  absl::InlinedVector<Dim, 4> dims;  // per dimension of the input
  Dims shape;                        // shape of the result: without shrunk axes, with new axes

  Dims counts() const;
  bool whole = true;  // true if the box is the whole input, in order
};

// Computes the box. InvalidArgument names the element of the expression that does not fit the
// input. REQUIRES: a known rank. Counts that depend on unknown vectors or dimensions are kUnknown.
StatusOr<StridedBox> ResolveStridedSlice(const StridedSliceMasks& masks,
                                         const StridedSliceVectors& vectors,
                                         const PartialShape& input);

// Like the function above, with begin, end and strides as tensors and a fully known input shape.
// InvalidArgument also if the tensors are not vectors of equal length.
StatusOr<StridedBox> ResolveStridedSlice(const StridedSliceMasks& masks, const Tensor& begin,
                                         const Tensor& end, const Tensor& strides,
                                         const Shape& input);

// The tensor of a copy that contains the box: the source or the destination.
enum class BoxSide { kSource, kDestination };
// Adds the box's dimensions to *copy. On side `side` the strides are those of a dense tensor of
// shape `whole`; on the other side the box itself is dense. Returns the index of the box's first
// element in the tensor.
int64_t WalkBox(const StridedBox& box, const Shape& whole, BoxSide side, StridedCopy* copy);

// InvalidArgument unless the shape of `value` is the shape of the box.
Status CheckValueOfBox(const StridedBox& box, const Tensor& value, string_view name);
// Writes `value` into the box of `whole`. REQUIRES: CheckValueOfBox has succeeded.
void StoreInBox(const StridedBox& box, const Tensor& value, Tensor& whole, Scheduler& threads);

}  // namespace penstock

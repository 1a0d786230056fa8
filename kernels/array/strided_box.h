// SPDX-License-Identifier: Apache-2.0
//
// StridedBox: what a Python slice expression such as x[1:, ..., newaxis, ::-2, 3] means for a
// tensor of a given shape. The vectors begin, end, strides and five bit masks spell the expression,
// as StridedSlice and its kin carry it.
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

// Bit i of a mask speaks of element i of the vectors.
struct StridedSliceMasks {
  int64_t begin = 0;        // begin[i] is left out
  int64_t end = 0;          // end[i] is left out
  int64_t ellipsis = 0;     // element i is "..."; at most one bit
  int64_t new_axis = 0;     // element i is newaxis
  int64_t shrink_axis = 0;  // element i is a single index: the dimension goes away

  Status Init(const KernelInit& node);
  static StridedSliceMasks Of(const Attrs& attrs);
  // The five attributes, as an op declares them.
  static std::vector<AttrDef> AttrDefs();
  // The five of them out of a node's attributes, for another op on the same slice.
  static Attrs AttrsOf(const Attrs& attrs);
};

// The vectors, null where their values are not known yet.
struct StridedSliceVectors {
  const Dims* begin = nullptr;
  const Dims* end = nullptr;
  const Dims* strides = nullptr;
  int64_t count = 0;  // how many elements each of them has
};

struct StridedBox {
  struct Dim {
    int64_t begin = 0;
    int64_t stride = 1;
    int64_t count = 0;  // kUnknown where it is
  };
  absl::InlinedVector<Dim, 4> dims;  // per dimension of the input
  Dims shape;                        // of the result: without shrunk axes, with new ones

  Dims counts() const;
  bool whole = true;  // every element, in order
};

// InvalidArgument says which element of the expression does not fit the input. REQUIRES a known
// rank. Where vectors or dimensions are unknown, so are counts.
StatusOr<StridedBox> ResolveStridedSlice(const StridedSliceMasks& masks,
                                         const StridedSliceVectors& vectors,
                                         const PartialShape& input);

// The same from tensors, all known.
StatusOr<StridedBox> ResolveStridedSlice(const StridedSliceMasks& masks, const Tensor& begin,
                                         const Tensor& end, const Tensor& strides,
                                         const Shape& input);

// Adds the box's dimensions to *copy: on one side as they lie in a dense tensor of shape `whole`,
// on the other side dense. Returns the box's first element in the tensor.
enum class BoxSide { kSource, kDestination };
int64_t WalkBox(const StridedBox& box, const Shape& whole, BoxSide side, StridedCopy* copy);

// InvalidArgument unless `value` has the shape that the expression selects.
Status CheckValueOfBox(const StridedBox& box, const Tensor& value, string_view name);
// Writes `value` into the box of `whole`. REQUIRES that the check has passed.
void StoreInBox(const StridedBox& box, const Tensor& value, Tensor& whole, Scheduler& threads);

}  // namespace penstock

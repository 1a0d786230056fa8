// SPDX-License-Identifier: Apache-2.0
//
// NdIndex: a list of index tuples, each naming a slice of a tensor by its leading dimensions; what
// GatherNd and ScatterNd read.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The treatment of tuples that index nowhere: the attribute bad_indices_policy.
enum class BadIndices { kError, kIgnore };
Status ReadBadIndicesPolicy(const KernelInit& node, BadIndices* policy);

struct NdIndex {
  int64_t tuples = 1;
  std::vector<int64_t> slices;  // per tuple, which slice in row-major order; none if depth is 0
  int64_t slice_elements = 1;
  int64_t num_slices = 1;        // that the tensor has
  Dims result;                   // indices.shape[:-1] + target.shape[depth:]
  std::vector<int64_t> ignored;  // the tuples that index nowhere, ascending; their slices are 0

  // `indices` is int16, uint16, int32 or int64 [..., depth], each row a tuple into a tensor of
  // shape `target`. InvalidArgument names the first tuple that does not index into it, unless it is
  // ignored.
  static StatusOr<NdIndex> Of(const Tensor& indices, const Shape& target,
                              BadIndices bad = BadIndices::kError);

  // Strikes the ignored tuples off the list. `updates` has a slice for each tuple; the result one
  // for each that is left. ResourceExhausted if there is no memory for it.
  StatusOr<Tensor> Strike(const Tensor& updates);
};

// indices[:-1] + target[depth:], as far as known.
StatusOr<PartialShape> NdIndexedShape(const PartialShape& indices, const PartialShape& target);

}  // namespace penstock

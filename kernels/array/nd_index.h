// SPDX-License-Identifier: Apache-2.0
//
// NdIndex: a list of index tuples, the input of GatherNd and ScatterNd. Each tuple selects a slice
// of a tensor by its leading dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The policy for tuples that are out of range: the attribute bad_indices_policy.
enum class BadIndices { kError, kIgnore };
Status ReadBadIndicesPolicy(const KernelInit& node, BadIndices* policy);

struct NdIndex {
  int64_t tuples = 1;
  std::vector<int64_t> slices;  // row-major index of each tuple's slice; empty if depth is 0
  int64_t slice_elements = 1;
  int64_t num_slices = 1;        // slices of `target`
  Dims result;                   // indices.shape[:-1] + target.shape[depth:]
  std::vector<int64_t> ignored;  // out-of-range tuples, ascending; `slices` holds 0 for them

  // Reads `indices`, an int16, uint16, int32 or int64 tensor [..., depth]. Each row is a tuple of
  // indices into a tensor of shape `target`. InvalidArgument if `indices` is a scalar or has
  // another type, or if depth exceeds the rank of `target`. Unless `bad` is kIgnore,
  // InvalidArgument also if a tuple is out of range; it names the first one.
  static StatusOr<NdIndex> Of(const Tensor& indices, const Shape& target,
                              BadIndices bad = BadIndices::kError);

  // Removes the ignored tuples from this list. `updates` has a slice for each tuple; returns the
  // slices of the remaining tuples. ResourceExhausted if there is no memory for them.
  StatusOr<Tensor> RemoveIgnored(const Tensor& updates);
};

// Returns indices.shape[:-1] + target[depth:], as far as it is known. InvalidArgument if `indices`
// is a scalar, or if depth exceeds the rank of `target`.
StatusOr<PartialShape> NdIndexedShape(const PartialShape& indices, const PartialShape& target);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// CheckpointWriter: the interface of the writers of both formats. Finish makes the whole checkpoint
// visible in one step. Not thread-safe.
#pragma once

#include "core/base/status.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/tensor.h"

namespace penstock {

class CheckpointWriter {
 public:
  virtual ~CheckpointWriter() = default;

  // Adds a whole tensor. InvalidArgument if the name is empty or was added before, or if the type
  // cannot be saved.
  virtual Status Add(string_view name, const Tensor& tensor) = 0;
  // Adds the slice `slice` of a tensor of shape `whole`. May be called again for other slices of
  // the tensor. InvalidArgument if `tensor` does not have the slice's shape, or if type or `whole`
  // differ from those of an earlier call for the same name; other errors as for Add.
  virtual Status AddSlice(string_view name, const Shape& whole, const TensorSlice& slice,
                          const Tensor& tensor) = 0;
  // Makes the checkpoint visible. REQUIRES: called once, after all other calls.
  virtual Status Finish() = 0;

  // Adds a whole tensor if `shape_and_slice` is empty, else the slice that it describes in the form
  // of SaveV2: "4 3 0,2:-".
  Status AddAs(string_view name, string_view shape_and_slice, const Tensor& tensor) {
    if (shape_and_slice.empty()) return Add(name, tensor);
    ASSIGN_OR_RETURN(const ShapeAndSlice part, ShapeAndSlice::Parse(shape_and_slice));
    return AddSlice(name, part.shape, part.slice, tensor);
  }
};

}  // namespace penstock

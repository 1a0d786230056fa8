// SPDX-License-Identifier: Apache-2.0
//
// CheckpointWriter: what writers of both formats do. Nothing is visible before Finish, and then all
// of it is. Single-threaded.
#pragma once

#include "core/base/status.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/tensor.h"

namespace penstock {

class CheckpointWriter {
 public:
  virtual ~CheckpointWriter() = default;

  // InvalidArgument for an empty name, one that was added before, or a type that cannot be saved.
  virtual Status Add(string_view name, const Tensor& tensor) = 0;
  // The part `slice` of a tensor of shape `whole`. May be called for other parts of it, too.
  virtual Status AddSlice(string_view name, const Shape& whole, const TensorSlice& slice,
                          const Tensor& tensor) = 0;
  // REQUIRES that it is called once, last.
  virtual Status Finish() = 0;

  // The whole tensor, or the part of one that a SaveV2 node means by "4 3 0,2:-".
  Status AddAs(string_view name, string_view shape_and_slice, const Tensor& tensor) {
    if (shape_and_slice.empty()) return Add(name, tensor);
    ASSIGN_OR_RETURN(const ShapeAndSlice part, ShapeAndSlice::Parse(shape_and_slice));
    return AddSlice(name, part.shape, part.slice, tensor);
  }
};

}  // namespace penstock

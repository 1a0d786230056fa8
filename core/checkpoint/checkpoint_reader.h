// SPDX-License-Identifier: Apache-2.0
//
// CheckpointReader: the tensors of a checkpoint, in either of TensorFlow's formats (FORMAT.md).
//
// Every tensor that it returns has been verified. The files may be hostile: before memory is taken
// for a tensor, their sizes must allow for it (of a V1 file, 22 elements for each byte).
// Thread-safe. Errors are DataLoss if the files are damaged, and name file and tensor.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct SavedTensor {
  DType dtype = DType::kInvalid;
  Shape shape;
};

class CheckpointReader {
 public:
  virtual ~CheckpointReader() = default;

  // The prefix that it was opened by.
  const std::string& prefix() const { return prefix_; }
  // The names of all tensors, ascending.
  virtual std::vector<std::string> names() const = 0;
  // NotFound if there is no tensor of that name.
  virtual StatusOr<SavedTensor> Describe(string_view name) const = 0;
  // NotFound if the tensor was saved in slices that do not cover this one.
  virtual StatusOr<Tensor> ReadSlice(string_view name, const TensorSlice& slice,
                                     Allocator& allocator) const = 0;

  // The whole tensor, or the part of it that a RestoreV2 node means by "4 3 0,2:-". InvalidArgument
  // where it was saved with another type than `dtype`, or as part of another shape.
  StatusOr<Tensor> ReadAs(DType dtype, string_view name, string_view shape_and_slice,
                          Allocator& allocator) const;

 protected:
  explicit CheckpointReader(std::string prefix) : prefix_(std::move(prefix)) {}
  Status KeyNotFound(string_view name) const;

 private:
  const std::string prefix_;
};

// The V2 checkpoint of that prefix, or if there is none the V1 checkpoint whose files match it
// as a pattern. NotFound if there is neither. `env` must outlive the reader.
StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(Env& env, const std::string& prefix);

}  // namespace penstock
